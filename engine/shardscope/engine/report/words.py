"""Words of our own sentences and naming schemes: made by docs/generate.py."""

from typing import Final

WORDS: Final = """
a aarch ab abab abcdef able about above absent absmax absolute accelerate accelerator acceleratorconfig acceleratorstate
accents accept access accidents account across act action activation activations adalora adapt adapter adapters add
added additional additionalproperties address addresses adds adjust admission admit admits admitted adopt advice
advisory affected affine after afterwards again against ago agree agreed ai aim albert alias aliases alibi align aligned
alignment alike all allocated allow allowed allows almost alone along alora alpha alphabets already also altclip
alternatives although always amax ambiguity ambiguous among an anchored and anew announced announces another answer
answering answers any anything anyway anywhere apart api appear appeared appears append appended appends applicable
applied arbitrary architecture architectures archive archived archives are argparse args argument arguments argv aria
arm around arranged array arrays arrive arrived arrow as ascii ascontiguousarray aside ask asked asking asks assemble
assets assumes at attempt attempts attention attn attnbackend attnmasktype attntype attribute attributedict attributes
audio audit authentic author authority authors auto autoep autotp available average averaged avg away awq axes axis b
back backbone backed backend backends backslash backslashreplace backtracks backups backwards bad balancing bamba bar
bare bart base based batches bbiufcmmosuva bdlora be became because become been before began begin beginning begins
begun behaves behind being beit believe believed belong belongs below bench benchmarks benchoptions beneath bert beside
best beta betas better between beyond bf bfloat bguarantee bias biases bidirectional big bigcode bin binary biogpt bird
bit bitgenerator bitnet bits bitsandbytes biufcm blip blk blob blobs block blocker blockers blocks blocksize bloom blt
body bom bool boolean booleans boolstorage boot both bound boundary bounded bounds bour box boxes brace braces bracket
brackets branch break breaks bridge bring brings brk broke broken browser bsc bsr bucket buckets budget buffer buffers
build builds built builtin builtins bundle busy but by byte bytearray byteorder bytes bytesio bytesiowritedata
bytesstoragemetadata bytestorage bzip c ca cache cached call callable callbacks called caller calls came camembert can
cancelled candidate candidates canine cannot canonical capabilities capability care careless carries carry case cases
cast cat catalogue categories category causal cause ccol ceiling cell cells central cert certain certificate
certificates certifies cgroup cgroups chain chained chameleon chance change changed changes changing channel channels
char character characters charged charstorage chat chatglm check checked checklist checkpoint checkpointed checkpointing
checkpoints checks checksum checksums children chk choice choices choose chooses chosen chunk chunked chunks
chunkshardingspec chunkstoragemetadata citations cite cites ckpt claim claimed claims class classes classification
classify clean clear click client climbs clip clock clone close closed closes cluster coalesced code codecs codegen
coder codes cogvlm cohere col collections collectives collision colon column columns combinations combining come comes
comma command commas comment comments commit committed common companion comparable compare compared comparing comparison
compatible complete completely complex complexdoublestorage complexfloatstorage component compose composite composition
compress compressed compresses compression compressor compute computed computes concat concatenated concerned concluded
conditional conditions confidence config configuration configurations confirm confirmed confirms conflict conformer
confusable conj conjugated conjugates connected consent consist consists consolidate consolidated consolidating
consolidation const constant constants constructor consumed contained container containers containment content context
contiguous continue contradict contradicted contradiction contradicts control conv convbert convention conversion
convert converted converter converting converts convnext coo coordinate coordinates copied copies copy copying copyreg
corda core cores correct correction correlation corruption cos cosine cost costs could count counted counter counts
cover coverage covers cp cpmant cpp cpu crashed crc crdownload create creates cross crossing crow cs csc csr csv ctc
ctor ctrl cu cuda cudagraphscope current currently cursor custom cut cuts d damage damaged darwin dask dat data database
dataclasses dataloader dataset date dates datetime days dbrx dcp dd dead deadline dealt deberta debug debugoption dec
decay decide decided decides decimal decisions declaration declare declared declares declined decode decoded decoder
decoders decodes decoding decompress decompressed decompressor decrypt deduplicating deep deeper deepseek deepspeed
deepspeedplugin default defaultdict defaults deferred defined defines deflate deflated defs degree degrees deit delete
deletion delivers denied denominator dense densereludense depend dependence dependency depends depth dequantise deque
derived descr describe described describes description descriptions descriptor descriptors deserialize desired dest
destination deterministic detr dev deviate device devicemesh deviceplacementspec devices diagnosis diagnostic diagonal
dialog dict dictionary dicts did diff differ difference differences different differently differs diffoptions diffusers
diffusion digest digests digit digits dill dim dimension dimensional dimensions dims dinov direct direction directly
directory disagree disagrees disk disks dist distcp distil distilbert distrib distributed distributedtype distribution
distributions divide divided divides dividing divisibility division divisions dl do docs document documentation
documented documents does doing done dora dot dots dotted double doublestorage doubts down download downloaded dp dpt
draft draws drift drifted drive drop dropout dropped dropping ds dt dtensor dtensors dtensorspec dtype dtypes dump
duplicate durable during dxsm dynamic dynamiclossscaler dynamo dynamobackend e each earlier early easily edge edges edit
edited editors edp egg eight einter either elastic electra element elements else elsewhere ema emb embd embed embedding
embeddings empty enc encdecattention encode encoder encodermodel encoding encrypted end ended endian ending endings ends
engine enormous enough ensures enter entries entropy entry enum enumerable enumerableshardingspec enums environment eof
ep epoch eps eq equal ernie error errorbody errors escalate escalation escape escaped escapes esm estimate estimates etc
etp eurobert evaluated evaluation evaluationstrategy even evenly event events ever every everything evidence exact
exactly examined example exaone exceed exchange exchanged exchanging exclude excluded exclusive exclusively executed
executor exhausted exist existed exists exit exp expanded expect expected expecting expects experimental expert experts
explain explanation explicit explorer exponent exponents export exported expp express expression expressions exps
extended extension extensions extent extents external extra extraction eye f fa fabric face facility fact factor factors
factory facts fadvise fail failed fails failure fake falcon fallocate false familiar family fan far fast fastest fat
fault fc fd fdinfo feed feedforward fetch fetched few fewer ff ffn field fields fifo figure figures file filepart files
filesystem filesystemwriter fill filled fills filter filtered filters final find finding findings finds fine finish
finished finite first fit fits fitting five fix fixed fixlook fixoptions fixture flag flags flan flash flat flatlayout
flattened flaubert flax float floating floats floatstorage flock florence flow flux fn fnu fnuz fold folded folder
folders follow followed follows for forbids forcausallm force foreign forever forget form format formats forms fortran
forward found four fp fqn fraction fractions fragment fragmentation fragmentations fragments frame frames framework
frameworks free freq freqs from frombuffer front frozen frozenset fs fsdp fsdpoption fsize full fully functions funnel
further furthest fuse fused futex fuyu g gain gamma gap gaps garbage gate gated gates gather gathering gave gb geglu
gelu gemma general generate generated generation generator geometry get getattr gets gettime ggjt ggla ggmf ggml gguf gi
gib git give given gives glm glob global glossary glu go goes gone good got gpt gptj gptneo gptneox gptq gqa grad
gradients grains grammar granite graph grew grid grids grok group grouped groups groupvit grow grows guaranteed
guarantees guess guessed guesses guessing guidance gz gzip h had half halfstorage halves hand handled handlers happened
happens hard hardlink hardware harm has hash hashed hashlib have hdf head header headers heads healthy heard heat held
helium help helps here hf hh hidden hide high higher highest hint hints histogram historical hold holder holders holds
hole holes home host hostile how hparams html https hub hubert hubstrategy hugging huggingface hunyuan hwm hybrid hyper
i ial ibert iconv id idefics identity idle ids idx idxs if ignore ignored ignores ih ii ij illegal illustrate
illustrates imag image impl implementation implements import imported imports impossible in include included incomplete
index indexed indexedcopy indexedpiece indices indivisible inf infer inference inferencecudagraphscope inferred infinite
infinity inflated info information init injector inner inode inodes inp input inputs insecure inside inspect inspected
inspection install installed instance instant instead instruct int integer integers intent inter interface interleave
intermediate internal internlm internvl interpreted interpreter interprets interrupted interval intervalstrategy into
intstorage inv invalid inventory inverse invert invisible invocation invstd io ipynb iq iqi is isolation issue issued it
item items iter iterable iteration iterator its itself izer j jagged jamba janus jax jetmoe jinja jit joblib join joined
joins journal json jsonl k kasa kb keep keeps kept keras kernel kernels key keys ki kib killed kills kimi kind kinds
knew know known knows kosmos kv l label labels lack lacks laid landlock language large larger largest last late latent
later latest latin lay layer layernorm layers layertype layout layoutlm layoutlmv layouts le lead leading leads learned
learning least leave leaves led left leftover leftovers legacy legal len length lengths lenient less let lets letter
letters level levels lfm lfs lib libexec libraries library libseccomp licen license lie lies lightning like lilt limit
limits lin line linear lines link links linux list listed listens listing lists literal little live lives llama
llamaforcausallm llava llm lm lmhead lmheadmodel ln lo load loaded loader loaders loading loads local localdomain
localhost localnonpersistentobject locals locations locator lock locked loftq log logical logits logname logs lone long
longcat longer longest longformer longstorage look looked looking looks loongarch loop loops loose lora loses loss
lossscaler lossscalerbase lost low lower lowered lowest lr ls ltx luke m machine machines made madvise mae magic
magnitude main major make makers makes making malformed malice malware mamba manifest manifests many map mapped mapping
mappings maps marian mark marked marker marks markup markuplm mask masked master masters match matched matches matching
materialize matrix matters max maximum may mbart mcore md me mean meaning means meant measure measured measurement media
medium meet meeting megatron mem memavailable member members meminfo memo memory memoryerror memtotal mend mended mends
merge merged mergemeasure merges mesh meshes meshlayout message met meta metadata metadataindex method methods metrics
mi mib microseconds middle might minicpm minimax ministral misaligned misleads mismatch mismatched missed missing
misspelled mistake mistaken mistral mistralai mistralforcausallm mistyped mix mixed mixer mixtral mixtralforcausallm
mixture mkldnn ml mla mlatransformerconfig mllama mlp mlx mmap mnt mo mobile mobilebert mod mode model modeling
modeloptions models modeltype moderate modernbert modification modified module modules moe molmo moment moments momentum
monteclora moonshot more moshi most mosu mount mounted mounts move moved moves mp mpnet mprotect mpt mqa mra mremap ms
msgpack msgspec mt mtime mtp mtrand much multi multiarray multiple multiples multiplied multiplier multiplies multiply
munmap musicgen must mxfp n na name named names namespace namespaces naming nan nans nd ndarray ne near nearest nearly
need needed needs neg negated negates negative neighbour neighbours neither nemo nemotron neo neox nested net network
never nevertheless new newer newobj next nextn nezha nf nfc nfkc nfs night nl nllb nn no nobody node nodes nofile nomic
non none nonewprivs nonfinite nonpersistent nope nor norm normal normalisation normalise normalization norms not noted
notes nothing notice noticed now nowhere np npy npz ns nsecs nsp nul null nulltokenizer num number numbered numbers
numel numeric numpy nv nvfp nvidia nvme nystromformer o object objects observed occur occurs ocdbt odd oddly odds of off
officially offload offloaddeviceenum offloaded offloading offset offsets often old older oldest olmo olmoe olora omni on
once one onelements ones only onnx ontile op opaque opcode opcodes opdownload open openai opened opening opens openssl
operating operation operations opt optim optimization optimizer optimizerconfig optimizernames optimizers option options
or orbax order ordered ordereddict orders ordinary org orig origin original orphan os oss other others otherwise our
ours out outermost outline output outputfile outputs outside over overflow overflows overlap overlapping overlaps
overlong override overwrites overwritten ovis owlvit own owner owns p pace pack package packaged packages packed packing
pad padded padding paddings pads page pages pageup pair pairs paligemma parallel parallelism parallelmode param
parameter parameters params parent parenthesis parse parsed parser parsers parsing part partial partialstate partition
partitioned partitions parts pass passed passes passing past patch path pathlib paths pattern patterns payload pb pbtxt
pcg pdf pdparams peek peekoptions peft pefttype pegasus pending people per perceiver perfectly period permission
permissions permute persimmon persistent person phi philox phimoe picked picking pickle pickled pickler picklers pickles
picture pid piece pieces pin pins pip pipe pipeline pipelines pipes pissa pixtral pkg pkl place placed placeholders
placement placements places plain plan plane planned planner planning plans plbart plugin point pointer points policy
pool pooler pooling port portable pos position positions positive posix posixpath possessive possible post power powers
pp ppc pre preallocated precise precision predict preferred prefix prefixes preflight prelayernorm prepare prepared
preprocessor present preserve pretrained prevent preview previous print printed prints prior private privileges privs
prob probably problem proc process processes processgroupstate processor producer producers product profile program
programs progress proj project projections projector promise promised promises promote promoted promoting promotion
prompt proof properties property prophetnet proportional proto protobuf protocol protocols prototype prove proven proves
proving pruned pt pth pull pure purepath pureposixpath purewindowspath purpose put puts py pyc pyproject pyseccomp
python pytorch pyx q qa qalora qb qformer qint qk qkv qkvparallellinear qkvz qparams qq qrank qtensor qu qualification
qualified quality quant quantisation quantisations quantised quantization quantize quantized queries query question
queue quick quickstats quint quota quotactl quote quoted quotes qweight qwen qzeros r ra raise raised raises ram ran
random randomstate range ranges rank ranknum ranks rate raw rb rc re reach reached reaches read readable reader readers
reading readlink readme reads readv ready real reason reasoning rebuild recipe recognisable recognised reconstruct
reconstructor record recorded records recovery rectangle recurrent redistribute reduce reduceop refer reference
references refers reformer reformulated refs refusal refuse refused refuses reg region register registers registry
regression regular relative release released releases relied relu rely rembert remembered remote remove removed removes
rename renamed renames renaming rendered renders repair repaired repeat repeated repeats replace replaced replaces
replacing replica replicaid replicas replicate replicated replication reply report reported reportpreview reports
repositories repository request required requirements requires rerun rerundiagnostic rerunerrorinjector rerunmode
rerunstate resave reserve reserved reserves reshard reshardable resharded resharding resnet resolve resource rest
restart restore rests result results resume resumes retained retnet return reverse reversed revision revoke reward
rewrite rewritten rfc rich right riscv rise rises risk rl rlimit rmdir rms rmsnorm rng ro roberta robin roc rocm
roformer room root roots rope rotary round rounded rounding rounds routed router row rowparallellinear rows rrefs rslora
rst rt rule rules run running runs runtime rwkv s safe safely safetensors safeuuid said salvage same sample sampler
samples sandbox sandboxed sanitised save saved savedmodel saveplan saves savestrategy savez saving say saying says sbin
scalar scalars scale scaled scaler scales scaling scan scans scatter scb sched scheduler schedulers schedulertype schema
schemas scheme scope scoped score screen script scripts sdpa seamless search searched seccomp second seconds secret
secrets section sections secure security see seed seedsequence seem seems seen sees segformer segments seldom selected
selection selector self selfattention send sends sense sent sentence sentencepiece sentences separator separators seq
seqlm seqtrainingarguments sequence sequences serializable serializablestatetype serialization serve served server
servers serving session set setrlimit sets setting settings settle settled seven several sfc sh sha shape shapes shard
sharded shardedobject shardedtensor shardedtensorfactory shardedtensormetadata sharding shardmap shardmaps shardmetadata
shardorderentry shards shardscope share shared shares shell shift short shortened shorter shortest shortstorage should
show shown shows shrank side sides sight sighup sigkill siglip sign signal signature signatures signed sigreturn sigterm
silence silently silu simple simplenamespace sin since single sink siqi site six size sizes sketches skip slash slice
slices sliding slope small smaller smallest smollm snapshot snapshots so socket soft software solar some somebody
something somewhere sort sorted sound source sources space spaces span spans spare sparse spawn spawned speak speaks
spec special speech speed spell spelled spelling spellings spent spiece splinter split spread sq sqrt squeezebert src
srv ssh ssl ssm stable stablelm stack stacked stage staged stages staging stale stand standard stands starcoder start
started starts stat state statement states statics stats status statvfs stay stays stem step steps still stock stood
stop stopped stops storage storageinfo storagemeta storages store stored stores str stranger strategy stray stream
stretch stretches strict stride strided stridedshard strides string strings stripped stronger structural structure su
sub subbyte subclass subclasses subfolder subject subjects subnormal subparam subparamshape substantial such sudo
sufficient suffix sum summand summed sums support supported supports sure surgery surrogate surrogateescape
surrogatepass surrogates survive survived survivor suva swa swap swapped sweep swiglu swin switch symbolic symlink
symmetric sync syntax sys syscall system systems t tab table tables tabs tag tail take taken takes taking talks tally
tapas tar target targets task tasks tasktype tell tells temp template templates temporary tensor tensorflow tensormeta
tensorproperties tensors tensorstoragemetadata tensorwritedata tenth term terminal terms tests text texts textual tf
tfevents th than that the their theirs them themselves then there these they thing things thinker third this those
though thread threads three through throughout throw tie tied ties tiktoken tilde tile tiles time timedelta times
timesformer timestamp timezone tiny titan title tls tmp tmux to today together tok token tokenizer tokens tokentype told
tolerance tolerates toml too took tool tools top topk topology torch torchscript torchtitan torn total totals touched
tower tp tq trace tracked tracker trailing train trainable trained trainer training trainingarguments transfer transfers
transform transformation transformer transformerblock transformerconfig transformers translate transpose transposed
transposes travel travels treat tree tried trim trip true truncated trust trusted trusts trustworthy truth try tts tulu
tuple tuples turn turns tutorial tutorials twice twins two txt type typed typedstorage types u uint uler ulimit umt
unaligned unasked unassigned unavailable unbounded unclaimed unclear uncommitted uncompressed uncovered undeclared
undefined under understands understood undoing undone unedited unequal unet uneven unevenly unexpected unfinished unfit
unicode uninitialised unispeech unit united units universal universally unknown unless unlike unlisted unmapped
unmatched unmerged unnamed unneeded unpack unpacked unpacking unpacks unpaired unpickle unplaced unproven unqualified
unquoted unreachable unread unreadable unrecorded unsafe unset unsound unstored unsupported unterminated untie until
untouched untyped untypedstorage unusable unused unusual unwritable unwritten up update upper upscaling upstream ur url
urls usable usage use used user username users uses using usr usual usually ut utf utilities utils uuid v va vae valid
validate validation value values vanished var variables variant variants vaultgemma vec vector vendor vendors verb
verdict verification verified verify verifying verl version versions very video view views vila vilt virtual visible
vision visual vit vl vllm vlm vm vmhwm vocab vocabularies vocabulary vouches voxtral vpp w wait waits walk want wanted
wants warning warns was watch watched watchoptions wav wavlm way ways wb wbits weak web weight weights well went were wg
what whatever when where wherever whether which while whisper white who whoever whole whom whose why wi wide width
widths will win window windows windowspath wins wise wish with within without wk wo word wording words work worked
worker workers works workspace world worlds worse would wpe wq wrap wrapped wrapper wrapping wraps writable write
writeitem writeitemtype writer writers writes writing written wrong wrongly wrote wss wte wv x xdg xf xglm xl xla xlm
xlnet xlstm xmod xnn xrange xs xverse xxs xz xzf ya yaml yes yet yi yml yolos yoso you your z za zamba zarr zarray
zattrs ze zero zeros zerostageenum zgroup zip zmetadata zst zstandard zstd
"""
