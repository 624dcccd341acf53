"""What *Rectifying Open-Set Object Detection* fixes: super-classes, sizes, the paper, and the views of its parts."""

from __future__ import annotations

from curation.manifest.header import LabelView, Paper

_ANIMAL = (
    "011k07 012074 0120dh 0175cv 019h78 01dxs 01dy8n 01f8m5 01h3n 01h44 01h8tj 01x_v 01xq0k1 01yrx 029tx "
    "02hj4 02l8p9 0306r 035vxb 03bj1 03bk1 03d443 03fj2 03fwl 03k3r 03qrc 0449p 04c0y 04cp_ 04g2r 04m9y "
    "04rmv 05n4y 05z6w 0633h 068zj 06j2d 06l9r 06mf6 071qp 0755b 078jl 07bgp 07dm6 084hf 084zz 0898b "
    "08pbxl 096mb 09b5t 09csl 09d5_ 09ddx 09f20 09f_2 09gys 09kmb 09kx5 09ld4 0_cp5 0_k2 0bt9lr 0bwd_0j "
    "0by6g 0c29q 0c568 0ccs93 0cd4d 0cjq5 0cl4p 0cn6p 0cnyhnx 0cydv 0cyf8 0czz2 0d8zb 0dbvp 0dbzx 0dftk "
    "0dq75 0f6wt 0f9_l 0ft9s 0gd36 0gj37 0gv1x 0h23m 0jly1 0km7z 0kmg4 0ll1f78 0m53l 0n28_ 0nybt 0pcr "
    "0xfy "
)
_VEHICLE = (
    "012n7d 018p4k 0199g 01bjv 01btn 01lcw4 01x3jk 01xs3r 02068x 0323sq 04_sv 074d1 076bq 07cmd 07jdr "
    "07r04 09ct_ 09rvcxw 0cmf2 0f6nr 0h2r6 0pg52 0ph39 0qmmr "
)
SUPERCLASSES: dict[str, tuple[str, ...]] = {
    name: tuple(f"/m/{word}" for word in text.split())
    for name, text in (("animal", _ANIMAL), ("vehicle", _VEHICLE))
}
"""Label names of the 96 animals and 24 vehicles of Open Images: the unique leaves over sub-categories, sorted."""

_INNER = {
    "animal": "0jbk 015p6 01dws 01lrl 020jm 03hl4l9 03vt0 03xxp 04rky 06bt6 09dzg 0ch_cf 0d_2m 0fbdv 0gd2v",
    "vehicle": "07yv9 019jd 01prls 01rzcn 0k4j 0k5j",
}
INNER_NODES: dict[str, tuple[str, ...]] = {
    name: tuple(f"/m/{word}" for word in text.split()) for name, text in _INNER.items()
}
"""The super-classes themselves and the nodes between them and their leaves: plain Car, Bird, Boat."""

PAPER = Paper(
    title="Rectifying Open-Set Object Detection: Proper Evaluation and a Taxonomy",
    authors="Yusuke Hosoya, Masanori Suganuma, Takayuki Okatani",
    year=2023,
    venue="arXiv 2207.09775",
    bibtex=(
        "@misc{hosoya2023rectifying, title={Rectifying Open-Set Object Detection: Proper Evaluation and a Taxonomy}, "
        "author={Hosoya, Yusuke and Suganuma, Masanori and Okatani, Takayuki}, eprint={2207.09775}, "
        "archivePrefix={arXiv}, year={2023}}"
    ),
)
CUB_IMAGES = {"images": 11_788, "train": 5_994, "test": 5_794}
CUB_CLASSES, CUB_PARTS, OPEN_IMAGES_PARTS = 200, 4, 4
MTSD_CLUSTERS = (230, 55, 115)
"""Classes of the authors' clusters: known, unknown1, unknown2. Their lists are not public."""
CASES = ("unknown1", "unknown2", "unknown12")

TRAIN_VIEW = LabelView(known="keep", unknown="drop", negative="drop", ignored="drop")
TEST_VIEW = LabelView(known="keep", unknown="rename:unknown", negative="drop", ignored="drop")
