"""Evaluation results as a small table for people."""

from scae.evaluation import ConstellationResult, ImageResult


def describe(result: ImageResult | ConstellationResult) -> str:
    """The scores in per cent, the model's beside those without one."""
    if isinstance(result, ConstellationResult):
        return _describe_scenes(result)
    protocols = list(result.protocols)
    rows = {
        f"{label}, {level}": getattr(scores, level)
        for label, scores in (("LIN-MATCH", result.lin_match), ("LIN-PRED", result.lin_pred))
        for level in ("prior", "posterior")
    }
    rows |= {f"{name} (LIN-MATCH)": scores for name, scores in result.baselines.items()}
    width = max(map(len, rows))
    columns = [max(len(name), 8) for name in protocols]
    head = "  ".join(f"{p:>{c}}" for p, c in zip(protocols, columns, strict=True))
    lines = [
        f"{result.dataset}: fitted on {result.n_train} images, {result.n_test} held out, "
        f"{result.clusters} clusters; accuracy in %",
        f"{'':{width}}  {head}",
    ]
    for name, scores in rows.items():
        cells = [
            f"{100 * scores[p]:{c}.1f}" if p in scores else f"{'-':>{c}}"
            for p, c in zip(protocols, columns, strict=True)
        ]
        lines.append(f"{name:{width}}  {'  '.join(cells)}")
    return "\n".join(lines)


def _describe_scenes(result: ConstellationResult) -> str:
    rows = {"model": (result.segmentation_error, result.ari)}
    rows |= {k: (b["segmentation_error"], b["ari"]) for k, b in result.baselines.items()}
    width = max(map(len, rows))
    lines = [
        f"{result.dataset}: {result.n_scenes} scenes, {result.n_points} present points",
        f"{'':{width}}  error %    ARI",
    ]
    lines += [f"{name:{width}}  {100 * e:7.2f}  {a:5.3f}" for name, (e, a) in rows.items()]
    return "\n".join(lines)
