"""Public model families, words of the names of classes, and of file and tensor names in common use: kept by hand."""

from typing import Final

PUBLIC: Final = """
a_log aarch64 accelerate adapter added albert alibi all alpha amax answering args arm64 attention attn audio avg b bamba
bart base batches bert best beta betas bf16 bias bigcode bin bitnet blip block bloom blt byte bytes c c4ai cache causal
chameleon chat chat_template chatglm checkpoint choice ckpt class classes classification clip code codegen coder cogvlm
cohere command common conditional config consolidated conv conv1d convnext core cos cross ctc darwin data dataset dbrx
deberta decay decoder deepseek deepspeed deit dense diffusers diffusion dinov dist distcp distil distilbert double down
dpt dropout dt dtype electra ema embed embedding encoder entry epoch eps ernie ernie4 esm events exaone exp exp_avg
exp_avg_sq expert experts extra extraction falcon fast fc ffn file files final flan florence flux fold folder for found
fp fp16 fp32 fp4 fp8 freq fsdp fuyu gamma gate gelu gemma generation generation_config ggml gguf git glm global gpt gptj
gptneo gptneox gqa granite grok group groups groupvit h head heads helium hubert hunyuan idefics ignore image in index
inf init input instruct int4 int8 internlm internvl inv iter jamba janus jetmoe json jsonl k key keys kimi kosmos kv
last latest layer layernorm layers led lfm license lightning linux llama llava lm lmhead ln log logs longformer lora
lora_a lora_b lr ls ltx luke m2m magnitude main mamba marian mask masked master mbart md mean megatron merges metadata
method minicpm minimax ministral mistral mixer mixtral mllama mlp mobile mobilebert model modernbert moe molmo moment
momentum moonshot mp mpt mt5 multi multiple musicgen nemotron neo neox nllb norm nsp num o olmo olmoe omni openai opt
optim optimizer original out output ovis owlvit paligemma param params part patch pegasus perceiver persimmon phi phimoe
pickle pipeline pixtral pkl plan plbart pooler pooling position post pre preprocessor pretrained processor proj
projector prompt prophetnet pt pth py pyproject python q qa qkv query question qwen rank readme reasoning recurrent
reformer regression release relu requirements resnet results retnet reward rms rng roberta rope rotary router running
rwkv safe sampler scale scaler scheduler sdpa seamless segformer self sentence seq2seq seq2seqlm sequence shard siglip
silu sin small smollm solar special speech spiece sq ssm stable stablelm starcoder state states step swiglu swin switch
t5 tag tapas tar template text tfevents tied timesformer tiny tmp token tokenizer tokens toml torch tower tracked
tracker trainer training transformer transformers tts tulu txt umt5 unet unet2d unit universal up v vae value values var
vector video vila vilt vision visual vit vl vlm vocab voxtral w wav2vec2 weight weights whisper window windows with wk
wo world wpe wq wte wv x86_64 xglm xlm xlnet xlstm xverse yaml yi yml yolos zamba zero zst
"""
