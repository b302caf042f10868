"""The loop of EM, plain or accelerated, with a stopping rule in nats per row."""

import sys
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")
Path = Iterator[tuple[float, S]]  # log-likelihood and state after each iteration
Advance = Callable[[S], tuple[float, S]]  # state -> (its log-likelihood, the next state)
Watch = Callable[[int, float], bool]  # (iteration, log-likelihood) -> whether to stop

WINDOW = 10  # for images, likelihoods may rise by several nats per row after a plateau
MOST_MOMENTUM = 0.98
CONVERGED = "converged"  # start of the stop reason
STOPPED = "stopped by the callback"


class Progress(NamedTuple):
    """Progress of a fit, the argument of `callback` in each iteration.

    Attributes
    ----------
    iteration, max_iter : int
        Number of iterations of the stage so far, and its maximum.
    log_likelihood : float
        Total over all rows, in nats; while starts are screened, scaled from a sample.
    stage : str
        Such as "screening 1 of 4: quartimax", "refinement on 2,500 rows" or "fit".
    """

    iteration: int
    max_iter: int
    log_likelihood: float
    stage: str


Callback = Callable[[Progress], object]


class EMResult(NamedTuple, Generic[S]):
    """The result of EM."""

    state: S
    log_likelihood: float  # total at that state, in nats
    log_likelihoods: list[float]  # after each iteration
    stop_reason: str


def spoken(callback: Callback | None, mass: float) -> Callback:
    """Return the callback, which now also prints every iteration."""

    def hear(progress: Progress) -> None:
        words = f"{progress.stage}, {progress.iteration} of at most {progress.max_iter}"
        sys.stdout.write(f"{words}: {progress.log_likelihood / mass:.6g} nats per row\n")
        if callback is not None:
            callback(progress)

    return hear


def nesterov(
    advance: Advance[S], start: S, extend: Callable[[S, S, float], S] | None = None, age: int = 0
) -> Path[S]:
    """Yield (log-likelihood, state) for the start and then after every EM iteration.

    With `extend`, (before, now, beta) -> y, every step starts from an extrapolated state:

    y_k = x_k + beta_k (x_k - x_{k-1}),  x_{k+1} = EM(y_k),  beta_k = (k - 1) / (k + 2)

    This is Nesterov's sequence, restarted from x_k if the likelihood falls (O'Donoghue & Candes
    2015), so that it never decreases; k starts at `age`.
    """
    value, now = advance(start)
    yield value, start
    before = now
    while True:
        age += 1
        beta = min((age - 1) / (age + 2), MOST_MOMENTUM) if extend is not None else 0.0
        ahead = extend(before, now, beta) if extend is not None and beta > 0.0 else now
        ahead_value, following = advance(ahead)
        if beta > 0.0 and not ahead_value >= value:
            age, ahead = 0, now
            ahead_value, following = advance(ahead)
        before, now, value = now, following, ahead_value
        yield value, ahead


def iterate(
    path: Path[S],
    *,
    tol: float,
    max_iter: int,
    window: int = WINDOW,
    watch: Watch = lambda _iteration, _value: False,
    halt: Callable[[S], str | None] = lambda _state: None,
) -> EMResult[S]:
    """Run a path of (log-likelihood, state) until it has converged or must end.

    `tol` is the minimum gain in nats over ten iterations, scaled to the last `window` iterations.
    `watch` stops EM by returning True, `halt` by returning a reason.
    """
    value, state = next(path)
    values, share = [value], tol * window / WINDOW
    for iteration in range(1, max_iter + 1):
        if (reached := next(path, None)) is None:
            return EMResult(state, value, values[1:], "the path ended")
        value, state = reached
        values.append(value)
        stopped = watch(iteration, value)
        reason = halt(state)
        if stopped:
            reason = STOPPED
        elif reason is None and iteration >= window and value - values[-1 - window] < share:
            length = "iteration" if window == 1 else f"{window} iterations"
            reason = f"{CONVERGED}: improvement below tol over the last {length}"
        if reason is not None:
            return EMResult(state, value, values[1:], reason)
    return EMResult(state, value, values[1:], f"reached max_iter={max_iter} before it converged")


def watcher(callback: Callback | None, stage: str, max_iter: int, scale: float = 1.0) -> Watch:
    """Convert a callback to a `watch`; `scale` extrapolates values from a sample to all rows."""
    if callback is None:
        return lambda _iteration, _value: False

    def watch(iteration: int, value: float) -> bool:
        try:
            callback(Progress(iteration, max_iter, value * scale, stage))
        except StopIteration:
            return True
        return False

    return watch
