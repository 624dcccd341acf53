"""FindMeIfYouCan (2025): out-of-distribution splits near, far and farther, reviewed by hand."""
