"""The parameters of the ImageNet protocols, read from ``--set KEY=VALUE``, and protocols of one's own from a file."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from curation.benchmarks.imagenet.classes import CUTS, RULES, ClassRule, is_cut
from curation.benchmarks.parameters import LARGEST_SEED, Parameter, choice, whole, wordnet_parameter
from curation.canonical import canonical_json
from curation.errors import ProtocolError
from curation.hierarchy.declarations import read_declaration
from curation.ilsvrc2012 import ilsvrc2012_classes

HIERARCHIES = {
    "published": "the one-parent tree of the published protocols",
    "dag": "all hypernyms of WordNet 3.0: 118 dogs",
}
MISSING = {
    "refuse": "a class of the protocol that the data set lacks is an error",
    "report": "it is left out and told in the notes; all other classes keep role and label",
    "restrict": "the classes are restricted to those of the training source before they are cut, as the authors' code "
    "does: classes change sides and labels",
}
FORMULAS = ("sklearn-1.0", "sklearn-0.24")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.]{0,40}")


class Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A protocol of one's own.

    Attributes
    ----------
    name : str
        A lower-case word: the manifest is called ``imagenet/NAME``.
    known, negative, unknown : tuple of str
        Superclasses by wnid.
    cut : str
        See `curation.benchmarks.imagenet.classes.CUTS`; or a pattern such as ``KKNU``.
    """

    name: str
    known: tuple[str, ...]
    negative: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    cut: str = "whole"

    def rule(self) -> ClassRule:
        """Return the rule of the classes."""
        return ClassRule(cut=self.cut, known=self.known, negative=self.negative, unknown=self.unknown)


def read_protocol(text: str) -> str:
    """Return ``p1``, ``p2``, ``p3``, or the canonical JSON of what a TOML or JSON file declares.

    A manifest holds the declaration itself, so that it is built again without the file.

    Raises
    ------
    MissingFileError
        The text is neither of the three nor a file.
    ProtocolError
        The file is not such a declaration, or names what cannot be superclasses.
    """
    if text in RULES:
        return text
    if text.startswith("{"):
        try:
            declared = msgspec.json.decode(text, type=Declaration)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ProtocolError("The protocol's declaration cannot be read", found=str(error)[:200]) from None
    else:
        if not Path(text).exists():
            raise ProtocolError(
                "There is no such ImageNet protocol",
                where="--set protocol",
                expected=f"{', '.join(RULES)}, or a TOML or JSON file",
                found=repr(text[:80]),
            )
        declared = read_declaration(Path(text), Declaration, ProtocolError)
    _check(declared, text[:200])
    return canonical_json(msgspec.to_builtins(declared)).decode("utf-8")


def declaration_of(text: str) -> Declaration:
    """Return the declaration that a value of the parameter ``protocol`` stands for."""
    if text in RULES:
        rule = RULES[text]
        return Declaration(name=text, known=rule.known, negative=rule.negative, unknown=rule.unknown, cut=rule.cut)
    return msgspec.json.decode(text, type=Declaration)


def _check(declared: Declaration, where: str) -> None:
    named = [*declared.known, *declared.negative, *declared.unknown]
    wrong = ""
    if not _NAME.fullmatch(declared.name) or declared.name in RULES:
        wrong = f"name {declared.name[:40]!r}"
    elif not is_cut(declared.cut):
        wrong = f"cut {declared.cut[:40]!r}"
    elif not declared.known:
        wrong = "no known superclass"
    elif repeated := sorted({one for one in named if named.count(one) > 1}):
        wrong = f"{repeated[0][:40]!r} twice"
    elif leaves := sorted(set(named) & set(ilsvrc2012_classes())):
        wrong = f"{leaves[0]}, which is a class and no superclass"
    if wrong:
        raise ProtocolError(
            "The protocol's declaration does not hold together",
            where=where,
            expected=f"a name of its own, different superclasses, a cut ({', '.join(CUTS)} or a pattern such as KKNU)",
            found=wrong,
        )


PARAMETERS = (
    Parameter(
        "protocol",
        "p1",
        read_protocol,
        "p1, p2, p3, or a TOML or JSON file with name, known, negative, unknown (superclasses) and cut",
    ),
    choice("hierarchy", HIERARCHIES),
    whole("seed", 42, "of the split in train and val; published: 42", most=LARGEST_SEED),
    choice(
        "formula",
        FORMULAS,
        "order of two floating-point operations in the split: that of scikit-learn 1.0 and later, or of 0.24",
    ),
    choice("missing", MISSING),
    wordnet_parameter(),
)
