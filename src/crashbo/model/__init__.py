"""Gaussian processes on values and one-sided labels: kernels, EP, evidence, priors, and the average over models.

Symbols and shapes, the same in every module; `docs/notation.md` has those of the paper:

    d   coordinates of the unit cube
    n   points at which something was seen: trials of one output          X          n x d
    k   values, m labels, r = k + m rows: values first                    Rows
    o   outputs: 0 is the value, 1, 2, ... are the margins of its limits
    l   latents, independent GPs of variance 1; outputs are linear mixes  mixing     b x o x l
    b   settings of the hyperparameters, all computed at once             Hyperparameters, Posterior, ModelSet
    q   correlation functions that differ among all b x l                 Latents
    p   points at which something is predicted                            Prediction b x o x p

    value       what is measured, the cost or a constraint; in the units of its `Warp`, which standardises it
    margin      what decides about success: the trial holds while margin <= threshold
    threshold   a limit c, known or the prior's mean of an unknown one (`Block`)
    sign        of a label: +1 the latent is at or below its limit, -1 it is above
    lapse       e, the probability that a trial within its limits is labelled as beyond one all the same
    theta       logs of lengthscales, variance and noise variance of a value, d + 2
    sites       EP's Gaussians that stand for labels: precision and shift, relative to the limit
    half        lower triangular, half' half = G;  weights b: posterior mean k'b, covariance k - k' G k
"""
