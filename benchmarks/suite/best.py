"""The best known points of the problems.

Found by `python -m benchmarks.suite optima`: the best of 2^17 Sobol points, then for BoTorch's functions SLSQP on their
constraints from 40 starts, then a local random search of shrinking width from the best 6 points that succeed. Known
optima agree to at least six digits: Branin, Egg-crate, Hartmann, Michalewicz, Himmelblau; Gramacy 0.5998, speed reducer
2996.3482. BoTorch's pressure vessel rounds sizes in the cost, not in the constraints, and so has better points
than the published 6059.9; so has its welded beam (1.728 published).

The robot's search starts at the best cell of its grid (docs/robot.md) and takes steps down to 0.003 on the mean cost
over 20 roll-outs. That is the best known, not the best: a regret may come out slightly negative there. The same holds
for the robot with the lagging arm (arm2d: the best cell of its grid; arm5d: its random search,
`benchmarks/pole_grid.py`) and the Ant (the best of 120 random gaits).
"""

BEST: dict[str, tuple[float, tuple[float, ...]]] = {
    "sim1": (0.0, (0.9424777959754111, 0.0)),
    "case2": (0.39788735772973816, (0.5427728428895424, 0.15166666632321268)),
    "case4": (0.39788735772973816, (0.5427728428895424, 0.15166666632321268)),
    "pole2d": (0.7755969068722923, (0.3096194665525508, 0.3930814920313302)),
    "pole5d": (
        0.7609766129852237,
        (0.009348778180074898, 0.47421338700777904, 0.19745534535553938, 0.0, 0.5577083909974064),
    ),
    "arm2d": (0.745870738985215, (0.7375, 0.2625)),
    "arm5d": (
        0.5245557591763688,
        (0.04365113126370006, 1.0, 0.9480110809218452, 0.0, 0.44093776417217806),
    ),
    "ant": (
        -0.9136027192423775,
        (
            2.497839227514696,
            0.44556364368656276,
            0.39124447508016547,
            0.367724622858563,
            0.2516651775815243,
            0.11082077354630926,
            0.745527786426257,
            0.1233603449773958,
        ),
    ),
    "eggcrate": (-98.0, (0.6666666676848724, 0.333333333564263)),
    "hartmann6": (
        -33.22368011415515,
        (
            0.20168951130157944,
            0.1500106912220506,
            0.4768739731169529,
            0.2753324307171006,
            0.31165161734360186,
            0.657300535258281,
        ),
    ),
    "michalewicz10": (
        -9.660151715641344,
        (
            0.701206605165857,
            0.5000000003308491,
            0.4090255196279715,
            0.6121285223777676,
            0.5476425378717233,
            0.5000000001570581,
            0.46295434591484286,
            0.5589797005667813,
            0.5270312226494471,
            0.49999999969170267,
        ),
    ),
    "gramacy": (0.5997880520105331, (0.1951226913582619, 0.40466536065227116)),
    "chartmann6": (
        -3.3223680044401864,
        (
            0.20168951395505416,
            0.1500106917598312,
            0.47687396943131355,
            0.2753324308838992,
            0.3116516158407361,
            0.6573005345168185,
        ),
    ),
    "vessel": (5799.9411204077205, (0.8428565888736296, 0.40624999857195343, 42.58385729147708, 170.71300216075284)),
    "reducer": (2996.34816497315, (3.500000000007581, 0.7, 17.0, 7.3, 7.8, 3.3502146660982963, 5.286683229759758)),
    "beam": (1.5870775123972665, (0.16799999999660756, 4.067084774004046, 9.999999999282688, 0.16800000002996499)),
    "spring": (0.012665232788481046, (0.0516890575930364, 0.3567176558453566, 11.288970673741622)),
    "random-branin": (0.39788735772973816, (0.12389382343735733, 0.8183333318577088)),
    "random-hartmann3": (-3.8627797873326633, (0.1145888764127073, 0.5556488935758366, 0.8525469853910365)),
    "noisy-ackley": (0.0, (0.62, 0.41)),
    "machine": (-0.10871991903732023, (0.4748169290819771, 0.8000000000319024, 2.0)),
    "disks": (5.265389452581242e-23, (3.584428340330319, -1.8481265269624956)),
    "fence": (0.026413999693263565, (0.6109889532074457, 0.33549667750767587)),
    "corners": (-4.833101560248354, (1.0, 0.6199999999999328)),
    "bands": (0.2362510207411011, (0.46258746011147406, 0.4374125377734805)),
}
"""The lowest cost of a trial that succeeds, by problem, and where: a row for `Problem.truth`."""
