"""Train a tiny, randomly initialised model with TRL's GRPO on the verifier's rewards; runs on a CPU in a minute.

The model learns nothing worth having: the example shows that the parts fit. Put your model and its tokenizer in place.
"""

import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from kernel_gym import suites
from kernel_gym.integrations.grpo import KernelReward, prompts

tasks = [suites.find_task("level1/relu"), suites.find_task("level1/tanh")]
rows = [{"prompt": row["prompt"][1]["content"][:400], "task": row["task"]} for row in prompts(tasks)]

words = Tokenizer(models.BPE(unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.ByteLevel()
learner = trainers.BpeTrainer(special_tokens=["<unk>", "<pad>", "<end>"])
words.train_from_iterator([row["prompt"] for row in rows], learner)
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", eos_token="<end>")
shape = LlamaConfig(
    vocab_size=len(tokenizer),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    pad_token_id=tokenizer.pad_token_id,
    eos_token_id=tokenizer.eos_token_id,
)
reward = KernelReward(tasks)
with tempfile.TemporaryDirectory() as folder:
    settings = GRPOConfig(
        folder,
        max_steps=2,
        per_device_train_batch_size=4,
        num_generations=2,
        max_completion_length=32,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
    )
    trainer = GRPOTrainer(
        LlamaForCausalLM(shape),
        reward_funcs=reward,
        args=settings,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )
    trainer.train()
reward.close()
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
print(f"{len(losses)} steps; last verdicts: {', '.join(verdict.outcome for verdict in reward.verdicts)}")
