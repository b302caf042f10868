"""Reference implementations in plain NumPy, one equation per line, to read and to test against.

Supports are enumerated and densities are dense, so the code is slow but simple; nothing here
imports the package. Rows are observations, as everywhere: Y is (N, D), W is (D, K),
X and Z are (N, K).

| page | algorithm | docs/mathematics.md |
|---|---|---|
| `em_adaptive_ppca` | EM and classification EM of aPPCA and its extensions | 1.1, 1.2, 1.5, 1.12 |
| `em_incomplete` | EM of aPPCA around missing entries | 1.8 |
| `gibbs_adaptive_ppca` | Gibbs sweep of aPPCA, row scales and learned sizes | 1.3, 1.4, 1.12 |
| `gibbs_nonparametric_ppca` | Gibbs sweep of nonparametric PPCA | 2 |
| `em_adaptive_fa` | EM and classification EM of aFA | 3 |
| `gibbs_adaptive_fa` | Gibbs sweep of aFA | 3 |
| `gibbs_sparse_fa` | Gibbs sweeps of fsFA and isFA | 4 |

They share `low_rank` (the normal with x integrated out), `conditionals` (means, variances, loadings
and alpha given the rest) and `matrix_von_mises_fisher` (draws of orthonormal W).
"""
