"""A model file of the architecture Qwen2 with random weights: small enough for tests, and it writes nonsense."""

from pathlib import Path

import numpy as np

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WIDTH, HEADS, KV_HEADS, LAYERS, INNER = 32, 4, 2, 2, 48


def letters() -> list[str]:
    """The 256 letters that stand for bytes, in the order of `tokenizers`' byte-level alphabet."""
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def write_tiny_model(path: Path, seed: int = 0, architecture: str = "qwen2") -> Path:
    import gguf

    rng = np.random.default_rng(seed)
    words = [*letters(), "<|im_start|>", "<|im_end|>", "<|endoftext|>", "in"]
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(16384)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([1] * 256 + [3] * 3 + [1])
    writer.add_token_merges(["i n"])
    writer.add_eos_token_id(257)
    writer.add_pad_token_id(258)
    writer.add_chat_template(TEMPLATE)

    def tensor(name: str, *shape: int) -> None:
        writer.add_tensor(name, (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32))

    tensor("token_embd.weight", len(words), WIDTH)
    tensor("output.weight", len(words), WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32) * 4)
    key = WIDTH // HEADS * KV_HEADS
    for layer in range(LAYERS):
        name = f"blk.{layer}"
        for part, size in (("q", WIDTH), ("k", key), ("v", key)):
            tensor(f"{name}.attn_{part}.weight", size, WIDTH)
            writer.add_tensor(f"{name}.attn_{part}.bias", rng.standard_normal(size).astype(np.float32))
        tensor(f"{name}.attn_output.weight", WIDTH, WIDTH)
        tensor(f"{name}.ffn_gate.weight", INNER, WIDTH)
        tensor(f"{name}.ffn_up.weight", INNER, WIDTH)
        tensor(f"{name}.ffn_down.weight", WIDTH, INNER)
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{name}.{norm}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
