"""The authors' scripts: what `run_mnist.sh` and `run_constellation.sh` of the release do.

Three settings of those scripts have no effect in the release and none here: the learning-rate
schedule, `prior_within_example_constant=4.3` (K/C = 3.2 is used), and the separate weight of
the constellations' between-example prior.
"""

from scae import config
from scae.config import ConstellationExperiment, ImageExperiment, SetTransformerConfig

NOISE = config.NoiseConfig(in_evaluation=True)  # the release never turns its noise off


def mnist_release() -> ImageExperiment:
    """40x40 MNIST with 40 parts and 32 objects."""
    return ImageExperiment(
        name="mnist-release",
        reference="run_mnist.sh of the authors' release",
        model=config.StackedConfig(
            image_size=(40, 40),
            parts=40,
            objects=32,
            attention_pooling="released",
            set_transformer=SetTransformerConfig(presence="mask"),
            noise=NOISE,
        ),
        loss=config.LossWeights(
            prior_within=2.0, prior_between=0.35, posterior_within=0.7, posterior_between=0.2
        ),
        data=config.ImageDataConfig(name="mnist", canvas=40, shift=6),
        optimizer=config.OptimizerConfig(name="rmsprop", lr=3e-5),
        training=config.TrainingConfig(steps=300_000, batch=128),
    )


def constellation_release() -> ConstellationExperiment:
    """Constellations in the release's world: smaller rotations, one global normalisation."""
    return ConstellationExperiment(
        name="constellation-release",
        reference="run_constellation.sh of the authors' release",
        model=config.ConstellationConfig(
            set_transformer=SetTransformerConfig(
                layers=4, heads=4, width=128, output=32, presence="mask"
            ),
            prior_sparsity="released",
            normalise=False,  # the data's global range is all there is
            noise=NOISE,
        ),
        loss=config.LossWeights(posterior_within=0.0, posterior_between=0.0, two_parts=10.0),
        data=config.ConstellationDataConfig(max_rotation=90.0, global_range=True),
        optimizer=config.OptimizerConfig(name="rmsprop", lr=1e-4),
        training=config.TrainingConfig(steps=300_000, batch=32),
    )
