// Asking about the run: its server extension where there is one, which answers whatever the
// kernel is doing, else the kernel.

function pageConfig() {
  const config = document.getElementById("jupyter-config-data");
  return config ? JSON.parse(config.textContent) : null;
}

function serverBase() {
  const { baseUrl } = pageConfig();
  return baseUrl.endsWith("/") ? baseUrl : `${baseUrl}/`;
}

async function request(path, options = {}) {
  const config = pageConfig();
  if (!config) throw new Error("this page has no Jupyter server");
  const cookie = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/);
  const headers = {};
  if (cookie) headers["X-XSRFToken"] = cookie[1];
  if (config.token) headers.Authorization = `token ${config.token}`;
  return fetch(`${serverBase()}${path}`, { ...options, headers });
}

// The other half said no: its words are for the reader.
class Refused extends Error {}

class Source {
  constructor(model) {
    this.model = model;
    this.served = null;  // whether the server answers for this run; null before it was asked
    this.waiting = new Map();
    this.name = Math.random().toString(36).slice(2);  // by which its questions are told from others'
    this.number = 0;
    this.waitingSince = null;
    this.facts = {};
    this.listeners = [];
    this.heard = (message) => this.receive(message);
    this.told = () => this.learn(model.get("facts"));
    model.on("msg:custom", this.heard);
    model.on("change:facts", this.told);
    this.told();
    this.probed = this.probe();
  }

  // The state of the run, from whoever knew it last.
  learn(facts) {
    if (facts.state === undefined || (this.facts.now ?? 0) > facts.now) return;
    this.facts = facts;
    for (const listener of this.listeners) listener();
  }

  address(path, query = {}) {
    const words = new URLSearchParams({ ...query, home: this.model.get("home") });
    return `distrain/runs/${this.model.get("run")}/${path}?${words}`;
  }

  // What is asked first, to see whether the server answers.
  get opening() { return "facts"; }

  async probe() {
    try {
      const answer = await request(this.address(this.opening));
      this.served = answer.ok;
      if (answer.ok) this.learn(await answer.json());
    } catch {
      this.served = false;
    }
    return this.served;
  }

  // Raises Refused for a question that makes no sense.
  async ask(path, query = {}) {
    if (this.served ?? await this.probed) {
      try {
        const answer = await request(this.address(path, query));
        const body = await answer.json();
        if (answer.ok) return body;
        if (answer.status === 400) throw new Refused(body.message);
      } catch (error) {
        if (error instanceof Refused) throw error;
      }
      this.lost();
    }
    return this.askKernel(path, query);
  }

  // The server has gone away, or knows the run no more: look again in a while.
  lost() {
    this.served = false;
    clearTimeout(this.again);
    this.again = setTimeout(() => { this.probed = this.probe(); }, 5000);
  }

  askKernel(path, query) {
    const id = `${this.name}-${++this.number}`;
    this.waitingSince ??= Date.now();
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    const words = Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
    this.model.send({ kind: "ask", id, path, query: words });
    return answer;
  }

  receive(message) {
    if (message.kind !== "answer" || !this.waiting.has(message.id)) return;
    const { resolve, reject } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    this.waitingSince = this.waiting.size ? Date.now() : null;
    if (message.error === undefined) resolve(message.body); else reject(new Refused(message.error));
  }

  // Whether the kernel has owed an answer for a while: it is busy with something else.
  get kernelIsBusy() {
    return this.waitingSince !== null && Date.now() - this.waitingSince > 1000;
  }

  close() {
    clearTimeout(this.again);
    this.model.off("msg:custom", this.heard);
    this.model.off("change:facts", this.told);
  }
}
