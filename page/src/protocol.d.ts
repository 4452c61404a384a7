// What the kernel and the server say to the page. The other half is in Python: run/summary.py,
// run/pages/, ui/ and ui/form/view.py.

/** A widget's model as anywidget gives it; `State` has the traits. */
export interface Model<State = any> {
  get<Name extends keyof State>(name: Name): State[Name];
  set<Name extends keyof State>(name: Name, value: State[Name]): void;
  save_changes(): void;
  send(message: object): void;
  on(event: string, listener: (message: any) => void): void;
  off(event: string, listener: (message: any) => void): void;
  widget_manager: any;
  /** Whether nobody answers but the page's server. */
  lacksKernel?: boolean;
}

/** What all widgets have that ask about runs; `key` marks their places in documents. */
export interface Asking {
  home: string;
  run: number;
  key: string;
}

export interface Widget<State = any> {
  model: Model<State>;
  el: HTMLElement;
}

/** What shows a widget; `ready` says when it may take the place of a drawing. */
export interface View {
  root: HTMLElement;
  end: () => void;
  moved?: () => void;
  ready?: (kept: boolean) => Promise<void>;
}

export interface RunState extends Asking {
  summary: Partial<RunSummary>;
  batch: Partial<Batch>;
  waiting: boolean;
  kernel: string;
}

export interface Progress {
  phase: string;
  total: number;
  done: number;
  since: number;
  /** What is counted, where that isn't bytes. */
  unit?: string;
  /** How long it takes yet, in words. */
  left?: string;
}

/** The state of a run; times are seconds since 1970. */
export interface RunSummary {
  id: number;
  name: string;
  state: string;
  phase: string;
  final: boolean;
  where: string;
  size: string;
  begin: number;
  end: number | null;
  now: number;
  steps: { label: string; begin: number | null; end: number | null }[];
  labels: Record<string, string>;
  pools: Record<string, string>;
  progress: Progress | null;
  resumable?: boolean;
  annotation?: Annotation;
  note: string;
  /** Why it makes no progress; empty while it does. */
  hang?: string;
  error: string;
  cost?: string;
  /** What that leaves out. */
  cost_note?: string;
}

/** What people say of a run. */
export interface Annotation {
  note: string;
  tags: string[];
}

export interface Line {
  number: number;
  time: number;
  process: number;
  stream: string;
  text: string;
}

export type Bar = Pick<Line, "process" | "stream" | "text"> & Partial<Line>;

/** Lines that the kernel sends: those from `first` on, or, if it is `whole`, all that it keeps. */
export interface Batch {
  seq: number;
  whole: boolean;
  first: number;
  total: number;
  bars: Bar[];
  lines: DataView;
}

/** Number, time, process, stream, whether the next of its writer takes its place, text. */
export type LineRow = [number, number, number, string, boolean, string];

export interface LogAnswer {
  lines: LineRow[];
  bars: LineRow[];
  first: number;
  rows: number;
  total: number;
  end: boolean;
}

export interface TableRun {
  id: number;
  name: string;
  state: string;
  final: boolean;
  place: string;
  size: string;
  machines: string;
  experiment: string;
  study: string;
  cause: string;
  cost?: string;
  /** What that leaves out. */
  cost_note?: string;
  begin: number;
  end: number | null;
  best: { tag: string; value: number } | null;
  progress: Progress | null;
  /** What its user should hear while it goes on. */
  alarm?: string;
  annotation?: Annotation;
}

/** Ranks that stay between cells: what a list says of them, in words. */
export interface SessionRow {
  name: string;
  /** So many, or so many of all that are left. */
  ranks: string;
  state: string;
  place: string;
  last: string;
  final: boolean;
  idle: string;
  limit: string;
  memory: string;
}

/** A study of a list: `key` is the `study` of its trials' runs. */
export interface StudyRow {
  id: number;
  key: string;
  name: string;
  state: string;
  final: boolean;
  progress: string;
  running: number;
  best: string;
  cause: string;
  cost?: string;
  /** What that leaves out. */
  cost_note?: string;
  begin: number;
  end: number | null;
}

export interface Trial {
  id: number;
  state: string;
  final: boolean;
  parameters: Record<string, string | number>;
  goals: Record<string, number | null>;
  steps: number;
  begin: number;
  end: number | null;
  run: number | null;
  why: string;
}

/** A study, with what a run's state line needs; `front` are the trials that no other beats. */
export interface StudySummary extends RunSummary {
  ended: number;
  wanted: number;
  adds_trials: boolean;
  stops_trials: boolean;
  left: string;
  best: string;
  front: number[];
  names: string[];
  goals: string[];
  trials: Trial[];
}

/** From `low` to `high` on a scale, or the listed values equally far from each other. */
export interface StudyAxis {
  name: string;
  kind: "linear" | "log" | "reverse-log" | "listed";
  low: number;
  high: number;
  values: string[];
}

/** The drawings, and where each trial stands on the parallel axes, from 0 to 1, by its number. */
export interface StudyCharts {
  sheet: string;
  axes: StudyAxis[];
  shares: Record<string, (number | null)[]>;
}

/** Trials and charts are null where they are those that the page has `seen`; after the `end` no more come. */
export interface StudyAnswer {
  seen: string;
  end?: boolean;
  summary: Omit<StudySummary, "trials"> & { trials: Trial[] | null };
  charts: StudyCharts | null;
}

export interface StudyState extends Asking {
  study: number;
  state: Partial<StudyAnswer>;
  waiting: boolean;
  kernel: string;
}

/** One thing that compared runs have: a text for each, `best` are places of the best values. */
export interface ComparedRow {
  name: string;
  texts: string[];
  numbers: (number | null)[];
  best: number[];
  differs: boolean;
}

export interface CompareAnswer {
  titles: string[];
  runs: TableRun[];
  rows: ComparedRow[];
  diff?: string;
}

export interface CompareState extends Asking {
  runs: string;
}

export interface ChartsState extends Asking {
  runs: string;
  path: string;
  title: string;
  plotly: string;
  sheet: string;
  shape: Partial<Shape>;
  lines: PackedLine[];
}

/** The lines besides their points: plotly's traces, and the newest value of each metric. */
export interface Shape {
  keys: [run: string, tag: string][];
  traces: Record<string, any>[];
  newest: Record<string, string>;
  dots: number;
  thinned: boolean;
}

/**
 * Numbers as bytes, little-endian: `wide` steps are float64, everything else float32. From `low` to
 * `high` are the values of all points around each; empty where all are there.
 */
export interface PackedLine {
  step: DataView;
  wide: boolean;
  value: DataView;
  seconds: DataView;
  began: number;
  low: DataView;
  high: DataView;
}

export interface CurveAnswer {
  run: string;
  tag: string;
  step: number[];
  value: (number | null)[];
  wall_time: (number | null)[];
  low: (number | null)[] | null;
  high: (number | null)[] | null;
}

export interface MediaRow {
  kind: "histogram" | "image" | "text";
  run: string;
  tag: string;
  count: number;
  last: number;
}

export interface MediaState extends Asking {
  plotly: string;
  index: {
    rows?: MediaRow[];
    hparams?: Record<string, Record<string, unknown>>;
    notes?: string[];
  };
}

/** What a rank has shown: the `name` to ask for it by, and when, in seconds since 1970. */
export interface DisplayRow {
  name: string;
  rank: number;
  time: number;
}

export interface DisplaysState extends Asking {
  plotly: string;
  rows: DisplayRow[];
}

/** One of its forms, made safe, or a `note` that says why not; `label` is its text. */
export interface DisplayAnswer {
  label?: string;
  note?: string;
  text?: string;
  page?: string;
  image?: { form: string; data: string };
  figure?: { data: Record<string, any>[]; layout: Record<string, any> };
  table?: { rows: [text: string, head: boolean, columns: number, rows: number][][]; note: string };
}

/** Lines as `PackedLine` has them, but in base64. */
export type WrittenLine = { [Name in keyof PackedLine]: PackedLine[Name] extends DataView ? string : PackedLine[Name] };

export interface DrawnCharts {
  sheet: string;
  shape: Shape;
  lines: WrittenLine[];
}

/** All charts of a run; null where the page has seen them, or there are none. */
export interface ChartsAnswer {
  seen: string;
  end: boolean;
  metrics: DrawnCharts | null;
  times: DrawnCharts | null;
  resources: DrawnCharts | null;
  media: MediaState["index"] | null;
  displays?: DisplayRow[] | null;
}

/** What an output has for JupyterLab's extension: `created` tells runs of one number apart. */
export interface RunReference {
  run: number;
  home: string;
  created: number;
  part: "run" | "charts";
  final?: boolean;
}

/** The same for a study. */
export interface StudyReference {
  study: number;
  home: string;
  created: number;
  final?: boolean;
}

/** Counts of values: `edges` are those of all bins, `counts` has a row for each step. */
export interface Histograms {
  steps: number[];
  edges: number[];
  counts: number[][];
  notes: string[];
}

export interface Finding {
  code: string;
  places: [path: string, label: string][];
  severity: "error" | "warning" | "info";
  message: string;
  fixes: string[];
  /** What each repair saves, in words, where prices are known. */
  saves?: string[];
}

/** What a layout costs: `regions` is null until somebody asks. */
export interface CostView {
  sums: [figure: string, what: string][];
  note: string;
  asks: boolean;
  regions: [region: string, price: string][] | null;
}

export interface FieldView {
  path: string;
  name: string;
  label: string;
  text: string;
  hint: string;
  kind: string;
  extra?: boolean;
}

export interface PoolView {
  role: string;
  title: string;
  fields: FieldView[];
  extras: FieldView[];
  sizable: boolean;
  removable: boolean;
}

export type Option = [value: string, detail: string, fits: boolean, has?: string, takes?: string];

export interface FormView {
  places: [place: string, title: string][];
  on: string;
  settings: FieldView[];
  columns: [name: string, label: string][];
  pools: PoolView[];
  tuning: { rows: FieldView[][]; settings: FieldView[]; initial: FieldView[] };
  addable: [role: string, title: string][];
  totals: [figure: string, what: string][];
  picture: string;
  verdict: string;
  findings: Finding[];
  traffic: string[][];
  gradient: string;
  step: string;
  gain: string;
  cost: CostView | null;
  exports: [name: string, title: string, text: string, lost?: string][];
  cell: string;
  again: string;
  rehearsal: string;
  undo: boolean;
  redo: boolean;
  repaired: { label?: string; beside?: string };
}

export interface Files {
  name: string;
  saved: string[];
  note: string;
  tone: string;
}

export interface FormState {
  view: FormView;
  options: Record<string, Option[]>;
  files: Files;
  heard: [page: string, number: number];
  key: string;
  tab: string;
}
