// What the extension uses of JupyterLab 4 and Lumino 2. They come from the page, not from a package.

export interface LabWidget {
  id: string;
  node: HTMLElement;
  title: { label: string; caption: string; closable: boolean; icon?: unknown };
  readonly parent: LabWidget | null;
  readonly isDisposed: boolean;
  addClass(name: string): void;
  hide(): void;
  setHidden(hidden: boolean): void;
  dispose(): void;
}

export interface LabPanel extends LabWidget {
  addWidget(widget: LabWidget): void;
}

export interface Lumino {
  Widget: new (options?: { node?: HTMLElement }) => LabWidget;
  Panel: new () => LabPanel;
}

export interface MimeModel {
  readonly trusted: boolean;
  readonly data: Record<string, any>;
  readonly metadata: object;
  setData(options: object): void;
}

export interface Renderer extends LabWidget {
  renderModel(model: MimeModel): Promise<void>;
}

export interface RenderMime {
  addFactory(factory: { safe: boolean; mimeTypes: string[]; createRenderer: () => Renderer }, rank: number): void;
  createRenderer(mimeType: string): Renderer;
  preferredMimeType(data: object, safe: "any" | "ensure"): string | undefined;
}

export interface Shell {
  add(widget: LabWidget, area: string, options?: { rank: number }): void;
  activateById(id: string): void;
}

export interface App { shell: Shell }

export interface StatusBar {
  registerStatusItem(id: string, options: { item: LabWidget; align: "left"; rank: number }): void;
}

export interface Restorer { add(widget: LabWidget, name: string): void }

export interface Notifications {
  emit(message: string, type: "success" | "error" | "info" | "warning", options: {
    autoClose: number | false;
    actions: { label: string; callback: () => void }[];
  }): string;
}

/** The packages that JupyterLab shares; Notebook 7 has not all of them. */
export interface Shared {
  application: { ILabShell: unknown; ILayoutRestorer: unknown };
  apputils: { Notification: Notifications };
  rendermime: { IRenderMimeRegistry: unknown };
  statusbar?: { IStatusBar: unknown };
  components: { LabIcon: new (options: { name: string; svgstr: string }) => unknown };
  widgets: Lumino;
}

/** What a page's own packages are found in, by name and version. */
export type ShareScope = Record<string, Record<string, { get: () => Promise<() => any>; loaded?: unknown }>>;
