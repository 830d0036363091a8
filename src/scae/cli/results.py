"""Evaluation results as a small table for people."""

from scae.evaluation import ConstellationResult, ImageResult


def describe(result: ImageResult | ConstellationResult) -> str:
    """The scores in per cent, the model's beside those without one."""
    if isinstance(result, ConstellationResult):
        rows = {"model": (result.segmentation_error, result.ari)}
        rows |= {k: (b["segmentation_error"], b["ari"]) for k, b in result.baselines.items()}
        return _table(
            f"{result.dataset}: {result.n_scenes} scenes, {result.n_points} present points",
            ["error, %", "ARI, %"],
            {name: list(values) for name, values in rows.items()},
        )
    scores = {
        f"{label}, {level}": getattr(found, level)
        for label, found in (("LIN-MATCH", result.lin_match), ("LIN-PRED", result.lin_pred))
        for level in ("prior", "posterior")
    }
    scores |= {f"{name} (LIN-MATCH)": found for name, found in result.baselines.items()}
    return _table(
        f"{result.dataset}: {result.n_train} training images, {result.n_test} held out, "
        f"{result.clusters} clusters; accuracy in %",
        list(result.protocols),
        {name: [found.get(p) for p in result.protocols] for name, found in scores.items()},
    )


def _table(title: str, columns: list[str], rows: dict[str, list[float | None]]) -> str:
    """Fractions as per cent under their columns; a dash where there is none."""
    width, widths = max(map(len, rows)), [max(len(name), 8) for name in columns]
    texts = {
        name: ["-" if value is None else f"{100 * value:.1f}" for value in values]
        for name, values in rows.items()
    }
    lines = [title]
    for name, cells in {"": columns, **texts}.items():
        padded = [f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)]
        lines.append("  ".join([f"{name:{width}}", *padded]))
    return "\n".join(lines)
