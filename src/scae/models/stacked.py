"""Stacked Capsule Autoencoder: parts of an image, objects of the parts (sections 2.2-2.4)."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scae.config import StackedConfig
from scae.mixtures import Explanation, explain_parts
from scae.models.layers import glorot_uniform_
from scae.models.object_decoder import (
    POSE,
    ObjectDecoder,
    ObjectMLP,
    ObjectPresences,
    PoseVotes,
)
from scae.models.part_encoder import PartCapsules, PartEncoder
from scae.models.set_transformer import SetTransformer
from scae.models.templates import Templates, sobel_target
from scae.rendering import PixelMixture, image_log_likelihood

RenderFrom = Literal["parts", "winner", "soft"]


@dataclass(frozen=True)
class StackedExplanation:
    """Everything the model infers from a batch of images."""

    parts: PartCapsules
    colors: Float[Tensor, "batch parts channels"]
    votes: PoseVotes
    mixture: Explanation
    """Components are objects."""

    @property
    def presences(self) -> ObjectPresences:
        return ObjectPresences(self.votes.prior, self.mixture.responsibility.sum(1))


class StackedCapsuleAutoencoder(nn.Module):
    """Explains images as arrangements of part templates, and parts as arrangements of objects."""

    def __init__(self, config: StackedConfig):
        super().__init__()
        self.config = config
        self.part_encoder = PartEncoder(config)
        self.templates = Templates(config)
        template_pixels = config.channels * config.template_size**2
        inputs = POSE + 1 + config.special_features + template_pixels
        output = config.set_transformer.output
        if config.object_encoder == "set-transformer":
            self.object_encoder: nn.Module = SetTransformer(
                inputs, config.objects, config.set_transformer
            )
        else:
            self.object_encoder = ObjectMLP(
                inputs, config.parts, config.objects, config.object_mlp, output
            )
        self.object_decoder = ObjectDecoder(
            output,
            config.objects,
            config.parts,
            config.capsule_hidden,
            config.capsule_params,
            config.object_pose,
            config.noise,
            config.deformations,
            min_scale=config.min_scale,
        )
        if config.render_from == "votes" and config.dummy:
            # Pose of parts that no object explains; learned only where it is drawn.
            dummy = torch.empty(config.parts, 2, 3)
            self.dummy_vote = nn.Parameter(glorot_uniform_(dummy, config.parts, POSE))

    def parameter_levels(self) -> dict[str, list[nn.Parameter]]:
        """Parameters by what they belong to, each level with its own learning rate.

        Templates are pixels, alpha and background: single numbers with far to go, unlike the
        weights of the part level, to which the colours belong, and of the object level.
        """
        levels: dict[str, list[nn.Parameter]] = {"templates": [], "parts": [], "objects": []}
        for name, parameter in self.named_parameters():
            if name.startswith(("part_encoder.", "templates.color_")):
                levels["parts"].append(parameter)
            else:
                level = "templates" if name.startswith("templates.") else "objects"
                levels[level].append(parameter)
        return levels

    def object_input(
        self, parts: PartCapsules, colors: Float[Tensor, "batch parts channels"]
    ) -> Float[Tensor, "batch parts inputs"]:
        """Pose, absence, special features and coloured template of each part (section 2.3).

        Gradients stop at all but the special features.
        """
        templates = self.templates.templates()[None] * colors[..., None, None]
        geometry = torch.cat([parts.pose.flatten(-2), 1 - parts.presence[..., None]], -1)
        pixels = templates.flatten(2)  # (B, M, C*t*t)
        if self.config.stop_gradient_inputs:
            geometry, pixels = geometry.detach(), pixels.detach()
        return torch.cat([geometry, parts.features, pixels], -1)

    def explain_parts(
        self, parts: PartCapsules, colors: Float[Tensor, "batch parts channels"]
    ) -> tuple[PoseVotes, Explanation]:
        """Objects of the given parts, and how their votes explain the parts (eq. 11)."""
        config = self.config
        presence = parts.presence.detach() if config.stop_gradient_inputs else parts.presence
        encoder = self.object_encoder
        encode = encoder.factors if isinstance(encoder, SetTransformer) else encoder
        votes = self.object_decoder(encode(self.object_input(parts, colors), presence))
        target = parts.pose.detach() if config.stop_gradient_targets else parts.pose
        mixture = explain_parts(
            target.flatten(-2),
            votes.pose.flatten(-2),
            votes.scale,
            votes.presence,
            config.part_likelihood == "printed",
            config.dummy,
        )
        return votes, mixture

    def explain(self, image: Float[Tensor, "batch channels height width"]) -> StackedExplanation:
        """Parts, objects and their relation for a batch of images."""
        parts = self.part_encoder(image)
        colors = self.templates.colors(parts.features)
        votes, mixture = self.explain_parts(parts, colors)
        return StackedExplanation(parts, colors, votes, mixture)

    def target(
        self, image: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        """What is reconstructed: the image or its Sobel edges (appendix A.2)."""
        return sobel_target(image) if self.config.target == "sobel" else image

    def soft_votes(
        self, explanation: StackedExplanation
    ) -> tuple[Float[Tensor, "batch parts 2 3"], Float[Tensor, "batch parts"]]:
        """Posterior mean of the votes for each part, and of their presences.

        Without a learned dummy vote the dummy's share is divided among the objects.
        """
        votes, share = explanation.votes, explanation.mixture.responsibility  # (B, M, K)
        presence = torch.einsum("bmk,bkm->bm", share, votes.presence)
        if hasattr(self, "dummy_vote"):
            dummy = explanation.mixture.dummy_share[..., None, None] * self.dummy_vote
            return torch.einsum("bmk,bkmij->bmij", share, votes.pose) + dummy, presence
        share = share / share.sum(-1, keepdim=True).clamp_min(1e-12)
        return torch.einsum("bmk,bkmij->bmij", share, votes.pose), presence

    def winning_votes(
        self, explanation: StackedExplanation
    ) -> tuple[Float[Tensor, "batch parts 2 3"], Float[Tensor, "batch parts"]]:
        """The most probable object's vote for each part, and its presence."""
        winner = explanation.mixture.winner[:, None]  # (B, 1, M)
        pose = explanation.votes.pose.take_along_dim(winner[..., None, None], 1).squeeze(1)
        return pose, explanation.votes.presence.take_along_dim(winner, 1).squeeze(1)

    def object_presences(
        self, image: Float[Tensor, "batch channels height width"]
    ) -> ObjectPresences:
        """Prior and posterior presence of every object."""
        return self.explain(image).presences

    def log_likelihood(
        self, image: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch"]:
        """log p(y) + log p(x) of each image, the unsupervised score of section 2.4."""
        explanation = self.explain(image)
        parts = explanation.parts
        scene = self.templates.scene(parts.pose, parts.presence, explanation.colors)
        pixels = image_log_likelihood(self.target(image), scene)
        return pixels + (explanation.mixture.log_likelihood * parts.presence).sum(1)

    def reconstruct(
        self, explanation: StackedExplanation, source: RenderFrom = "parts"
    ) -> PixelMixture:
        """The image from part poses, or from object votes for them (winner or soft).

        All three use the parts' own presences, as figure 5 and appendix B do.
        """
        poses = {
            "parts": lambda: explanation.parts.pose,
            "winner": lambda: self.winning_votes(explanation)[0],
            "soft": lambda: self.soft_votes(explanation)[0],
        }
        return self.templates.render(
            poses[source](), explanation.parts.presence, explanation.colors
        )

    def reconstruct_objects(self, explanation: StackedExplanation) -> PixelMixture:
        """One image per object capsule alone, batch and objects merged (B*K first).

        A part is as present as the object makes it, times its own presence.
        """
        votes, parts = explanation.votes, explanation.parts
        presence = votes.presence * parts.presence[:, None]  # (B, K, M)
        colors = explanation.colors[:, None].expand(-1, presence.shape[1], -1, -1)
        return self.templates.render(
            votes.pose.flatten(0, 1), presence.flatten(0, 1), colors.flatten(0, 1)
        )
