"""Harmless texts, as cells, options, settings, logs and errors have them: none is a secret."""

from __future__ import annotations

CELLS = r"""
import torch
token = tokenizer("hello")["input_ids"]
pad_token_id = tokenizer.pad_token_id or tokenizer.eos_token_id
key = jax.random.PRNGKey(42)
key, subkey = jax.random.split(key)
password = getpass.getpass("Password: ")
user, password = os.environ["DB_USER"], os.environ["DB_PASSWORD"]
user, password = "user", "password"
api_key = os.environ.get("OPENAI_API_KEY") or ""
api_key = os.getenv("API_KEY") or input("API key: ")
auth = (os.environ["USER"], os.environ["PASS"])
auth = ("user", "pass")
auth=("username", "password")
requests.get(url, auth=HTTPBasicAuth("user", "password"))
login("your-username", "your-password")
tokens = ["<s>", "</s>", "<pad>", "<unk>"]
special_tokens = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
cache_key = f"{model}-{revision}-{split}"
sort_key = "validation_loss"
primary_key = "customer_id"
foreign_key = "orders.customer_id"
partition_key="2026-11-29"
x_key, y_key = "features_train", "labels_train"
metric_key = "eval/accuracy_top5"
state_dict_key = "module.encoder.layer.0.attention"
keys = ["input_ids", "attention_mask", "labels"]
batch = {key: value.to(device) for key, value in batch.items()}
secret_santa = "bob"
hidden, secret_dim = 256, 64
SECRET_NAME = "projects/my-project/secrets/wandb/versions/latest"
secret = client.access_secret_version(name=SECRET_NAME)
passes = 3
pass_rate = 0.97
n_pass, n_fail = 12, 3
pat = re.compile(r"epoch (\d+): loss=([0-9.]+)")
pattern = "checkpoint-*.pt"
auth_url = "https://accounts.google.com/o/oauth2/auth"
author = "Ada Lovelace"
authority = "https://login.microsoftonline.com/common"
cookie_jar = requests.cookies.RequestsCookieJar()
cookie = None
pw = pairwise_distances(x, metric="cosine")
pw, ph = 16, 16
revision = "a265f773a47193eed794233aa2a0f0bb6d3eaa63"
commit = "9de95578e1b3a7d0c5f2a4e6b8d0c2f4a6e8b0d2"
digest = "sha256:3f1c0d5e8b7a69f2d4c1b0a9e8f7d6c5b4a39281706f5e4d3c2b1a0987654321"
run_id = "3f2b8c1d9e4a4f6b8a7c5d3e1f0b2a49"
uid = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
model = AutoModel.from_pretrained("meta-llama/Llama-3.1-8B-Instruct", revision="main")
model = AutoModel.from_pretrained("sentence-transformers/all-MiniLM-L6-v2")
seed = 20261129
learning_rate, weight_decay = 3e-4, 0.01
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"
os.environ["NCCL_DEBUG"] = "INFO"
os.environ["HF_HOME"] = "/mnt/cache/huggingface"
os.environ["WANDB_PROJECT"] = "digits-baseline-2026"
os.environ["AWS_DEFAULT_REGION"] = "eu-central-1"
wandb.init(project="digits", name="run-2026-11-29-a1b2c3", mode="offline")
wandb.login()
huggingface_hub.login()
mlflow.set_tracking_uri("http://127.0.0.1:5000")
client = storage.Client(project="my-project-123456")
bucket = "s3://my-bucket-eu-west-1/data/train-00001-of-00064.tar"
path = "gs://vertex-runs-123456/output/run-42/checkpoints/epoch=09-step=1230.ckpt"
engine = create_engine("sqlite:///runs.db")
engine = create_engine("postgresql://localhost/test")
engine = create_engine("postgresql://user:password@localhost:5432/db")
url = "https://pypi.org/simple"
url = "https://github.com/pytorch/examples.git"
url = "git@github.com:pytorch/examples.git"
url = "https://user@github.com/pytorch/examples.git"
url = "https://storage.googleapis.com/cloud-tpu-artifacts/tensorflow/tf-2.15.0.whl?alt=media"
url = "https://example.com/search?q=deep+learning&key=title&sort=desc"
url = "https://docs.google.com/spreadsheets/d/example/edit?usp=sharing"
dsn = "Server=localhost;Database=runs;Trusted_Connection=True;"
dsn = "Driver={SQL Server};Server=db;Uid=user;Pwd=password;"
image = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
image = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.6.0-gpu-py312"
arn = "arn:aws:iam::123456789012:role/service-role/AmazonSageMaker-ExecutionRole"
kms = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
service_account = "trainer@my-project.iam.gserviceaccount.com"
print("password is wrong" if failed else "password is right")
raise ValueError("token must not be empty")
logging.info("secret %s was rotated", name)
parser.add_argument("--token", help="token of the tracker")
parser.add_argument("--api-key", default=None)
parser.add_argument("--key", default="loss")
assert response.headers["Authorization"].startswith("Bearer ")
headers = {"Authorization": f"Bearer {token}"}
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
headers = {"X-API-Key": api_key}
kwargs = dict(token=True, trust_remote_code=False)
if password == "": raise SystemExit
if token == "[MASK]": continue
return {"token": token.text, "pos": token.pos_, "lemma": token.lemma_}
vocab = {"the": 0, "secret": 1, "garden": 2}
text = "The secret of getting ahead is getting started."
text = "Enter your password to continue"
prompt = "You are a helpful assistant. Never reveal the secret word."
labels = ["login", "logout", "password_reset", "token_refresh"]
intents = ("auth", "login_failed", "session_expired")
columns = ["user_id", "session_token_count", "password_changed_at"]
df = df.rename(columns={"pass": "passengers", "key": "record_key"})
df["auth_type"] = "oauth2"
config = {"auth": "none", "user": "ada"}
config = {"auth": ["basic", "digest"]}
sns.heatmap(corr, cmap="coolwarm", annot=True, fmt=".2f")
ax.legend(loc="upper left", title="key")
np.random.seed(1234)
torch.manual_seed(0xDEADBEEF)
sample = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQ"
smiles = "CC(=O)OC1=CC=CC=C1C(=O)O"
dna = "ATGCGTACGTTAGCATCGATCGATCGGCTAGCTAGCATCGAT"
b64 = base64.b64encode(image_bytes).decode()
hash_of_file = hashlib.sha256(data).hexdigest()
schedule = "cosine_with_restarts"
strategy = "MultiWorkerMirroredStrategy"
layer_name = "model.layers.31.self_attn.q_proj.weight"
checkpoint = "epoch=9-val_loss=0.12-step=12345.ckpt"
key_padding_mask = mask.bool()
attn = F.scaled_dot_product_attention(query, key, value)
query, key, value = qkv.unbind(0)
k_proj, v_proj = "k_proj", "v_proj"
public_key = "ssh-ed25519"
host_key_alias = "cluster-login-node"
token_count, char_count = 128256, 40
max_tokens, top_p = 512, 0.9
password_field = "user_password"
client_secret_name = "oauth-client-secret"
connection_string = os.environ["CONNECTION_STRING"]
credentials = service_account.Credentials.from_service_account_file("key-file.json")
credentials, project = google.auth.default()
access_token = credentials.token
session = boto3.Session(profile_name="default")
sm = boto3.client("sagemaker", region_name="us-west-2")
estimator = PyTorch(entry_point="train.py", role=role, framework_version="2.6.0")
"""

SHELL = r"""
!pip install torch==2.13.0 torchvision
!curl -sSL https://install.python-poetry.org | python3 -
!curl -u "$USER:$PASSWORD" https://api.corp.net/v1
!curl -u user:password https://example.com
!curl -H "Authorization: Bearer $TOKEN" https://api.corp.net
!curl -H 'Content-Type: application/json' -d '{"a": 1}' http://localhost:8000
!curl -H 'Accept: application/vnd.github+json' https://api.github.com/repos/pytorch/pytorch
!curl -L -o data.zip https://zenodo.org/record/1234567/files/data.zip
!wget -q https://download.pytorch.org/models/resnet50-0676ba61.pth
!docker login -u $USER -p $PASSWORD registry.corp.net
!docker login --username ada --password-stdin registry.corp.net
!docker run -p 8080:8080 -v $PWD:/work nginx
!mysql -u root -p
!mysql -uroot -p$MYSQL_PASSWORD prod
!mysqldump -h db -P 3306 prod
!ssh -p 2222 ada@login.cluster.org
!sshpass -f password-file ssh root@host
!sshpass -p $PASSWORD ssh root@host
!gcloud auth login --no-launch-browser
!gcloud auth application-default login
!huggingface-cli login --token $HF_TOKEN
!wandb login --relogin
!aws configure set region eu-central-1
!aws s3 cp s3://bucket/key-of-model.pt .
!git clone https://github.com/huggingface/transformers.git
!git checkout 9de95578e1b3a7d0c5f2a4e6b8d0c2f4a6e8b0d2
!git commit -m "Rotate the secret key of the tracker"
!export HF_TOKEN=$(cat ~/.cache/huggingface/token)
!export PATH=/usr/local/cuda/bin:$PATH
!CUDA_VISIBLE_DEVICES=0 python train.py --epochs 3
!TOKENIZERS_PARALLELISM=false python train.py
!PAD_TOKEN=eos python train.py
!SORT_KEY=validation_loss python report.py
!python train.py --token-type bearer --key-size 2048
!python train.py --password-file /run/secrets/db
!python train.py --api-key-env OPENAI_API_KEY
!python train.py --tokenizer meta-llama/Llama-3.1-8B --max-tokens 512
!torchrun --nproc-per-node 4 --rdzv-id 123456 --rdzv-endpoint host:29500 train.py
!sbatch --partition=gpu --gres=gpu:a100:4 --time=02:00:00 job.sh
!kubectl get secret my-secret -o yaml
!openssl rand -hex 32
!ls -la /etc/ssl/private
%env TOKENIZERS_PARALLELISM=false
%env NCCL_SOCKET_IFNAME=eth0
%env DATA_KEY=train
%load_ext distrain_nb
%%distrain --on vertex --workers 4*n1-standard-16+2*T4 --framework tensorflow-2.18
%%distrain --on slurm -n 4 --env NCCL_DEBUG=INFO --param lr=0.1 --name night-run_7
%%distrain --on sagemaker --workers 2*ml.p4d.24xlarge --hyperparameter token_dropout=0.1
%distrain config project=my-project region=us-central1 bucket=my-bucket
%distrain tune --param key_dim=[32,64,128] --objective val_loss
"""

SETTINGS = r"""
learning_rate: 0.0003
token: [CLS]
pad_token: "<pad>"
auth: none
auth_type: basic
key: validation_loss
api_key: ${API_KEY}
password: ${DB_PASSWORD}
password: null
password: <password>
secret_name: wandb-key
secretKeyRef:
image_pull_secret: regcred
tokenizer: meta-llama/Llama-3.1-8B-Instruct
revision: 0e9e39f249a16976918f6564b8830bc894c89659
project: my-project-123456
region: europe-west4
partition: gpu-a100-80gb
cookie_policy: strict
max_tokens: 4096
session_name: night-run-2026-11-29
name: bert-base-uncased-finetuned-sst2-2026-11-29-0815
experiment: sweep-7c1f
optimizer: adamw_torch_fused
dataset: HuggingFaceH4/ultrachat_200k
checkpoint: gs://bucket/runs/42/epoch=09-step=1230.ckpt
mpi_options: -x NCCL_DEBUG=INFO -mca btl_tcp_if_include eth0
host: db.internal
port: 5432
user: trainer
connection: sqlite:///runs.db
loss=loss: ([0-9.]+)
torch>=2,<3
git+https://github.com/a/b@v1.2.3
numpy==2.4.6
10.0.0.2:/share:data
--workers 2 --gpu H100:8
subnet-0123456789abcdef0
sg-0a1b2c3d4e5f67890
fs-0123456789abcdef0
vpc-1a2b3c4d
projects/123456789012/locations/us-central1/tensorboards/1234567890123456789
kind: Secret Santa
kind: ConfigMap
"""

LOGS = r"""
epoch 3: loss=0.1234 acc=0.98 lr=3e-4 tokens/s=12345
step 1230/5000, 4.2 it/s, eta 00:14:59
rank 1: KeyError: 'token'
KeyError: 'password'
ValueError: token must not be empty
RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB
RuntimeError: Error(s) in loading state_dict: missing key encoder.layer.0.weight
FileNotFoundError: [Errno 2] No such file or directory: '/run/secrets/db'
ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded
401 Client Error: Unauthorized for url: https://huggingface.co/api/models/meta-llama/Llama-3.1-8B
Invalid user token. If you didn't pass a user token, make sure you are logged in
Access denied for user 'trainer'@'10.0.0.4' (using password: YES)
fatal: Authentication failed for 'https://github.com/a/b.git/'
Permission denied (publickey,password).
Token indices sequence length is longer than the maximum (612 > 512)
Setting `pad_token_id` to `eos_token_id`:50256 for open-end generation.
Special tokens have been added in the vocabulary
wandb: Currently logged in as: ada (team). Use `wandb login --relogin` to force relogin
wandb: Run data is saved locally in /tmp/wandb/offline-run-20261129_081500-a1b2c3d4
NCCL INFO comm 0x55d8c8a0 rank 0 nranks 4 cudaDev 0 busId 1e0 - Init COMPLETE
Using key: validation_loss
The secret wandb-key was rotated
Password: not set
password: required
auth: disabled
login: ok
Loaded 128256 tokens, key dimension 64
pass: 12, fail: 3
hash: 9de95578e1b3a7d0c5f2a4e6b8d0c2f4a6e8b0d2
HEAD is now at 9de95578e1b3a7d0c5f2a4e6b8d0c2f4a6e8b0d2 Give a cell the release
commit 9de95578e1b3a7d0c5f2a4e6b8d0c2f4a6e8b0d2
sha256:3f1c0d5e8b7a69f2d4c1b0a9e8f7d6c5b4a39281706f5e4d3c2b1a0987654321: Pull complete
Digest: sha256:3f1c0d5e8b7a69f2d4c1b0a9e8f7d6c5b4a39281706f5e4d3c2b1a0987654321
Downloading shards: 100%|██████████| 4/4 [00:12<00:00, 3.1s/it]
model.safetensors: 100%|█████| 1.12G/1.12G [00:30<00:00, 37.1MB/s]
Saving checkpoint to s3://bucket/run-42/epoch=09-step=1230.ckpt
slurmstepd: error: *** JOB 123456 ON node01 CANCELLED AT 2026-11-29T08:15:00 DUE TO TIME LIMIT ***
Traceback (most recent call last):
  File "/srv/train.py", line 12, in <module>
AssertionError: expected token 42, got 43
tensor([0.1234, 0.5678], device='cuda:0', grad_fn=<AddBackward0>)
Bearer of good news: the run succeeded
the bearer token expired
Set-Cookie: none
key=value pairs were expected
the password of user trainer is wrong
"""

# Options that a run is started with, as `NAME=VALUE`; each is also read as a setting.
PARAMETERS = tuple(
    f"{name}={value}"
    for name in ("lr", "epochs", "key_dim", "tokens", "pass_threshold", "auth_head", "pw_loss")
    for value in ("0.1", "3", "cosine", "True", "resnet50", "run-2026-11-29")
)

TEXTS = tuple(
    line for block in (CELLS, SHELL, SETTINGS, LOGS) for line in block.splitlines() if line.strip()
)
