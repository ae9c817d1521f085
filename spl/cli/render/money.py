"""Money for people: unknown is said, never zero."""

from __future__ import annotations

from spl.contracts.scores import SpentPart
from spl.records.evals import Cost

_NANO = 1_000_000_000
_SMALL = 100_000  # below a hundredth of a cent four decimals would say zero


def usd(nusd: int | None) -> str:
    """Return an amount in US dollars, or `unknown`."""
    if nusd is None:
        return "unknown"
    amount = nusd / _NANO
    if 0 < abs(nusd) < _SMALL:
        return f"${amount:.9f}".rstrip("0")
    return f"${amount:,.2f}" if abs(amount) >= 1 else f"${amount:.4f}"


def cost(figure: Cost | None) -> str:
    """Return what a cost is known to be, with its coverage unless that is complete."""
    if figure is None or figure.coverage == "not_applicable":
        return "n/a"
    if figure.nusd is None:
        return "unknown"
    if figure.coverage == "complete":
        return usd(figure.nusd)
    return f"≥{usd(figure.nusd)} (partial)"


def per_passed(spent: SpentPart | None) -> str:
    """Return what a run that passed on substance cost; from a partial cost it is a lower bound."""
    if spent is None or spent.per_passed_nusd is None:
        return "-"
    return f"{'' if spent.coverage == 'complete' else '≥'}{usd(spent.per_passed_nusd)}"
