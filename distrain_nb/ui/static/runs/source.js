// Asking about all runs: the server first, else the kernel, as for one run.

class RunsSource extends Source {
  get opening() { return "runs"; }

  address(path, query = {}) {
    return `distrain/${path}?${new URLSearchParams({ ...query, home: this.model.get("home") })}`;
  }

  learn(told) {
    if (!told.runs) return;
    this.runs = told.runs;
    for (const listener of this.listeners) listener();
  }

  async refresh() { this.learn(await this.ask("runs")); }

  // Cancel a run, or delete one that has ended. Raises Refused.
  async act(run, deed) {
    if (this.served ?? await this.probed) {
      const [method, path] = deed === "delete" ? ["DELETE", `runs/${run}`] : ["POST", `runs/${run}/${deed}`];
      const answer = await request(this.address(path), { method }).catch(() => null);
      if (answer?.ok) return;
      if (answer?.status === 409) throw new Refused((await answer.json()).message);
      this.lost();
    }
    await this.askKernel(deed, { run });
  }
}

// What a view of one run takes for its own widget: the table's, with the run's number put in.
class OneRun {
  constructor(model, run) {
    this.model = model;
    this.told = { run, home: model.get("home"), key: `${model.get("key")}-${run}`, facts: {}, batch: {}, waiting: false };
  }

  get(name) { return this.told[name]; }

  send(message) { this.model.send({ ...message, query: { ...message.query, run: String(this.told.run) } }); }

  on(event, act) { if (event === "msg:custom") this.model.on(event, act); }

  off(event, act) { if (event === "msg:custom") this.model.off(event, act); }
}
