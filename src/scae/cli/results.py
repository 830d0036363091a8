"""Evaluation results as a small table for people."""

from scae.evaluation import ConstellationResult, ImageResult

CAPSULES = {
    "parts_present": "parts present per image",
    "part_size": "mean size of present parts",
    "objects_present": "objects present per image",
    "explained_by_present": "share of present parts explained by present objects",
    "objects_sharing": "objects that share an image's parts",
    "objects_in_use": "objects in use",
    "image_ll": "image log-likelihood",
    "part_ll": "part log-likelihood",
}


def describe(result: ImageResult | ConstellationResult) -> str:
    """The scores in per cent, the model's beside those without one."""
    if isinstance(result, ConstellationResult):
        return _describe_scenes(result)
    protocols = list(result.protocols)
    rows = {
        f"{label}, {level}": scores[level]
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
    use = result.capsules
    shown = {label: use[name] for name, label in CAPSULES.items() if name in use}
    lines += [f"{label}: {value:.4g}" for label, value in shown.items()]
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
    for noise, error in result.error_at_noise.items():
        lines.append(f"error at point noise {noise}: {100 * error:.2f} %")
    return "\n".join(lines)
