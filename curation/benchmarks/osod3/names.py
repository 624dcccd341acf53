"""Names of the animals and vehicles of Open Images (class descriptions, CC BY 4.0), for eyes: classes match by key."""

from __future__ import annotations

_TEXT = (
    "011k07=Tortoise; 012074=Magpie; 0120dh=Sea turtle; 012n7d=Ambulance; 015p6=Bird; 0175cv=Tick; "
    "018p4k=Cart; 0199g=Bicycle; 019h78=Centipede; 019jd=Boat; 01bjv=Bus; 01btn=Barge; 01dws=Bear; "
    "01dxs=Brown bear; 01dy8n=Woodpecker; 01f8m5=Blue jay; 01h3n=Bee; 01h44=Bat; 01h8tj=Starfish; "
    "01lcw4=Limousine; 01lrl=Carnivore; 01prls=Land vehicle; 01rzcn=Watercraft; 01x3jk=Snowmobile; "
    "01x_v=Camel; 01xq0k1=Cattle; 01xs3r=Jet ski; 01yrx=Cat; 02068x=Gondola; 020jm=Beetle; "
    "029tx=Dinosaur; 02hj4=Dolphin; 02l8p9=Harbor seal; 0306r=Fox; 0323sq=Golf cart; 035vxb=Isopod; "
    "03bj1=Panda; 03bk1=Giraffe; 03d443=Rhinoceros; 03fj2=Goldfish; 03fwl=Goat; 03hl4l9=Marine "
    "invertebrates; 03k3r=Horse; 03qrc=Hamster; 03vt0=Insect; 03xxp=Invertebrate; 0449p=Jaguar; "
    "04_sv=Motorcycle; 04c0y=Kangaroo; 04cp_=Koala; 04g2r=Lynx; 04m9y=Lizard; 04rky=Mammal; 04rmv=Mouse; "
    "05n4y=Ostrich; 05z6w=Penguin; 0633h=Polar bear; 068zj=Pig; 06bt6=Reptile; 06j2d=Raven; 06l9r=Red "
    "panda; 06mf6=Rabbit; 071qp=Squirrel; 074d1=Submarine; 0755b=Scorpion; 076bq=Segway; 078jl=Snake; "
    "07bgp=Sheep; 07cmd=Tank; 07dm6=Tiger; 07jdr=Train; 07r04=Truck; 07yv9=Vehicle; 084hf=Worm; "
    "084zz=Whale; 0898b=Zebra; 08pbxl=Monkey; 096mb=Lion; 09b5t=Chicken; 09csl=Eagle; 09ct_=Helicopter; "
    "09d5_=Owl; 09ddx=Duck; 09dzg=Turtle; 09f20=Hippopotamus; 09f_2=Crocodile; 09gys=Squid; 09kmb=Spider; "
    "09kx5=Deer; 09ld4=Frog; 09rvcxw=Rocket; 0_cp5=Oyster; 0_k2=Ant; 0bt9lr=Dog; 0bwd_0j=Elephant; "
    "0by6g=Shark; 0c29q=Leopard; 0c568=Porcupine; 0ccs93=Canary; 0cd4d=Cheetah; 0ch_cf=Fish; "
    "0cjq5=Lobster; 0cl4p=Hedgehog; 0cmf2=Airplane; 0cn6p=Otter; 0cnyhnx=Bull; 0cydv=Caterpillar; "
    "0cyf8=Butterfly; 0czz2=Antelope; 0d8zb=Jellyfish; 0d_2m=Moths and butterflies; 0dbvp=Goose; "
    "0dbzx=Mule; 0dftk=Swan; 0dq75=Raccoon; 0f6nr=Unicycle; 0f6wt=Falcon; 0f9_l=Snail; 0fbdv=Shellfish; "
    "0ft9s=Dragonfly; 0gd2v=Marine mammal; 0gd36=Sea lion; 0gj37=Ladybug; 0gv1x=Parrot; 0h23m=Sparrow; "
    "0h2r6=Van; 0jbk=Animal; 0jly1=Turkey; 0k4j=Car; 0k5j=Aircraft; 0km7z=Skunk; 0kmg4=Teddy bear; "
    "0ll1f78=Shrimp; 0m53l=Rays and skates; 0n28_=Crab; 0nybt=Seahorse; 0pcr=Alpaca; 0pg52=Taxi; "
    "0ph39=Canoe; 0qmmr=Wheelchair; 0xfy=Armadillo"
)
NAMES: dict[str, str] = {
    f"/m/{key}": name for key, _, name in (one.partition("=") for one in _TEXT.split("; "))
}
"""Key (MID) to name, of the leaves and inner nodes of both super-classes."""
