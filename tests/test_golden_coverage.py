"""Every golden file but the Student-t ones, which are not in the paper, has its test."""

import golden_files

NOT_IN_THE_PAPER = {"capsule_likelihood_student_nopres", "capsule_likelihood_student_pres"}

TESTED = {
    "batch_mlp", "capsule_layer_affine", "capsule_layer_nodeform", "capsule_layer_noscale",
    "capsule_layer_similarity", "capsule_likelihood_normal_nopres",
    "capsule_likelihood_normal_pres", "constellation_baseline_decoder", "constellation_data",
    "constellation_model", "eval_match", "geometric_transform", "math_ops",
    "order_invariant_likelihood_nopres", "order_invariant_likelihood_pres", "pad_and_shift",
    "part_encoder_conv", "part_encoder_conv_att", "part_encoder_conv_att_similarity",
    "part_encoder_linear", "qkv_attention", "rmsprop", "scae_model_alpha_sigmoid",
    "scae_model_coupled_relu1", "scae_model_nostopgrad_const4.3", "scae_model_sobel",
    "scae_model_soft_votes", "set_transformer_1head_binpres", "set_transformer_1head_softpres",
    "set_transformer_4head_binpres", "set_transformer_induced", "set_transformer_nopres_noln",
    "sobel", "sparsity", "template_decoder_alpha_nocolor_3ch",
    "template_decoder_alpha_sigmoid_1ch", "template_decoder_coupled_relu1_1ch",
    "template_decoder_coupled_sigmoid_3ch_learnscale", "template_warp",
}  # fmt: skip


def test_no_golden_file_is_left_out() -> None:
    present = {path.stem for path in golden_files.folder().glob("*.npz")}
    assert present - NOT_IN_THE_PAPER == TESTED
