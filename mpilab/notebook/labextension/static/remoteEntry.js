// A JupyterLab extension for cells that begin with %%kernel. They are highlighted and indented as C,
// lines that the compiler rejects are marked, and a pointer over a name shows what it is. Another
// plugin, in predictions.js, shows predictions as forms.
//
// JupyterLab loads it as a module-federation container, an object with `init` and `get`. It is short
// enough to be written by hand, and so needs neither node nor a bundler: everything that it uses is
// shared by JupyterLab itself.

(() => {
  const NAME = 'mpilab-c-cells';
  const MAGIC = /^%%kernel\b/;
  const PREDICTIONS = new URL('predictions.js', document.currentScript.src);
  const MAGIC_LENGTH = 64; // more than enough of the first line to see the magic
  let shared;

  // A module that JupyterLab shares; there is one version of each of those used here.
  const load = async name => {
    const [version] = Object.values(shared[name]);
    return (await version.get())();
  };

  const isC = text => MAGIC.test(text);
  const isInC = state => isC(state.doc.sliceString(0, MAGIC_LENGTH));

  // The CodeMirror extension factory of one cell: C while its text begins with the magic.
  const forCell = ({ Compartment, EditorState, Prec }, c) => model => {
    const language = new Compartment();
    // The first language counts; the one of the notebook (Python) follows.
    const asC = Prec.highest(c);
    return [
      language.of(isC(model.sharedModel.getSource()) ? asC : []),
      EditorState.transactionExtender.of(change => {
        if (!change.docChanged) return null;
        const before = isInC(change.startState);
        const after = isC(change.newDoc.sliceString(0, MAGIC_LENGTH));
        return before === after ? null : { effects: language.reconfigure(after ? asC : []) };
      })
    ];
  };

  // Marks. A compile error's output has them in its metadata (mpilab/notebook/panel.py), with a
  // fingerprint of the cell that was compiled: a cell that has changed since has none.

  const fingerprint = text => {
    let value = 0;
    for (let i = 0; i < text.length; i++) value = (Math.imul(31, value) + text.charCodeAt(i)) >>> 0;
    return value;
  };

  // What the outputs of a cell say of its present text: [{line, column, text}].
  const marksOf = (outputs, source) => {
    if (!isC(source)) return [];
    const compiled = fingerprint(source.slice(source.indexOf('\n') + 1).replace(/[ \t\r\n]+$/, ''));
    const found = [];
    for (let i = 0; i < outputs.length; i++) {
      const said = outputs.get(i).metadata?.mpilab;
      if (said?.of === compiled && Array.isArray(said.marks)) found.push(...said.marks);
    }
    return found;
  };

  const marking = ({ StateEffect, StateField }, view) => {
    const { Decoration, EditorView, ViewPlugin, WidgetType, keymap } = view;
    const set = StateEffect.define();

    class Message extends WidgetType {
      constructor(text) {
        super();
        this.text = text;
      }
      eq(other) {
        return other.text === this.text;
      }
      toDOM() {
        const node = document.createElement('span');
        node.className = 'mpilab-mark-message';
        node.textContent = `✗ ${this.text}`;
        node.title = this.text;
        return node;
      }
    }

    // A mark in the document: the line, and from where to where the mistake is underlined.
    const placed = (doc, { line: number, column, text }) => {
      if (!(number >= 1 && number <= doc.lines)) return null;
      const line = doc.line(number);
      const indent = line.text.length - line.text.trimStart().length;
      const from = line.from + Math.min(Math.max(column - 1, indent), line.length);
      const word = /^\w+/.exec(doc.sliceString(from, line.to));
      return { line, from, to: word ? from + word[0].length : line.to, text: String(text) };
    };

    const decorated = marks =>
      Decoration.set(
        marks.flatMap(({ line, from, to, text }) => [
          Decoration.line({ class: 'mpilab-mark-line' }).range(line.from),
          ...(to > from ? [Decoration.mark({ class: 'mpilab-mark' }).range(from, to)] : []),
          Decoration.widget({ widget: new Message(text), side: 1 }).range(line.to)
        ]),
        true
      );

    const none = { marks: [], decorations: Decoration.none };
    const field = StateField.define({
      create: () => none,
      update: (value, change) => {
        for (const effect of change.effects) {
          if (!effect.is(set)) continue;
          const marks = effect.value.map(mark => placed(change.state.doc, mark)).filter(Boolean);
          return marks.length ? { marks, decorations: decorated(marks) } : none;
        }
        return change.docChanged ? none : value;
      },
      provide: one => EditorView.decorations.from(one, value => value.decorations)
    });

    // F8 and Shift+F8 go to the next and the previous mark, and a screen reader says it.
    const go = step => target => {
      const marks = [...target.state.field(field).marks].sort((a, b) => a.from - b.from);
      if (!marks.length) return false;
      const at = target.state.selection.main.head;
      const next =
        step > 0
          ? (marks.find(mark => mark.from > at) ?? marks[0])
          : (marks.findLast(mark => mark.from < at) ?? marks[marks.length - 1]);
      const number = target.state.doc.lineAt(next.from).number;
      target.dispatch({
        selection: { anchor: next.from },
        scrollIntoView: true,
        effects: EditorView.announce.of(`Line ${number}: ${next.text}`)
      });
      return true;
    };

    const watch = ({ outputs, sharedModel }) =>
      ViewPlugin.define(target => {
        let isOpen = true;
        const show = () => {
          if (!isOpen) return;
          const marks = marksOf(outputs, sharedModel.getSource());
          if (marks.length || target.state.field(field).marks.length)
            target.dispatch({ effects: set.of(marks) });
        };
        // An editor must not be changed while it is being made or updated.
        const soon = () => queueMicrotask(show);
        outputs.changed.connect(soon);
        soon();
        return {
          destroy: () => {
            isOpen = false;
            outputs.changed.disconnect(soon);
          }
        };
      });

    const theme = EditorView.baseTheme({
      '.mpilab-mark-line': { boxShadow: 'inset 3px 0 var(--jp-error-color1)' },
      '.mpilab-mark': { textDecoration: 'underline wavy var(--jp-error-color1)' },
      '.mpilab-mark-message': {
        marginLeft: '2em',
        color: 'var(--jp-error-color1)',
        fontStyle: 'italic',
        userSelect: 'none'
      }
    });
    const keys = keymap.of([
      { key: 'F8', run: go(1) },
      { key: 'Shift-F8', run: go(-1) }
    ]);
    return model => (model.outputs ? [field, watch(model), keys, theme] : []);
  };

  // A pointer that rests on a name shows what Shift+Tab shows, which the Jupyter kernel knows.
  const hovering = ({ hoverTooltip }, tracker) =>
    hoverTooltip(
      async (view, position) => {
        const { doc } = view.state;
        const line = doc.lineAt(position);
        if (!isInC(view.state) || line.number === 1) return null;
        const before = /\w*$/.exec(doc.sliceString(line.from, position))[0];
        const after = /^\w*/.exec(doc.sliceString(position, line.to))[0];
        const isHere = cell => cell.editor?.editor === view;
        const panel = tracker.find(one => one.content.widgets.some(isHere));
        const kernel = panel?.sessionContext.session?.kernel;
        if (kernel?.status !== 'idle') return null; // a busy one would answer much later
        const code = doc.toString();
        const begin = position - before.length;
        const { content } = await kernel.requestInspect({
          code,
          cursor_pos: [...code.slice(0, begin)].length, // the protocol counts characters
          detail_level: 0
        });
        // For the arguments of a call, the kernel tells of the call: that is for Shift+Tab.
        if (!content.found || content.metadata.mpilab?.name !== before + after) return null;
        const { rendermime } = panel.content;
        const renderer = rendermime.createRenderer('text/html');
        await renderer.renderModel(rendermime.createModel({ data: content.data }));
        const create = () => {
          const dom = document.createElement('div');
          dom.className = 'mpilab-hover';
          Object.assign(dom.style, { padding: '4px 8px', maxWidth: '60em' });
          dom.append(renderer.node);
          return { dom };
        };
        return { pos: begin, end: position + after.length, above: true, create };
      },
      { hideOnChange: true }
    );

  // In a statement that is not complete yet, the C grammar has no token for the word before the cursor,
  // and JupyterLab, which completes tokens, would offer every word of the cell.
  const completing = tracker => {
    const known = new WeakSet();
    const takeWords = editor => {
      if (known.has(editor)) return;
      known.add(editor);
      const tokenAt = editor.getTokenAt.bind(editor);
      editor.getTokenAt = offset => {
        if (!isInC(editor.state)) return tokenAt(offset);
        const { doc } = editor.state;
        const [value] = /\w*$/.exec(doc.sliceString(doc.lineAt(offset).from, offset));
        if (!value) return tokenAt(offset);
        return { type: 'Identifier', offset: offset - value.length, value };
      };
    };
    tracker.activeCellChanged.connect(async (_, cell) => {
      await cell?.ready;
      if (cell?.editor?.getTokenAt) takeWords(cell.editor);
    });
  };

  const plugin = (codemirror, notebook, state, view) => ({
    id: `${NAME}:plugin`,
    description: 'Shows %%kernel cells as C, with the errors of the compiler.',
    autoStart: true,
    requires: [codemirror.IEditorExtensionRegistry, codemirror.IEditorLanguageRegistry],
    optional: [notebook.INotebookTracker],
    // JupyterLab opens notebooks once all extensions have been activated, so none is missed.
    activate: async (_, extensions, languages, tracker) => {
      const { support } = await languages.getLanguage('text/x-csrc');
      const language = forCell(state, support);
      const marks = marking(state, view);
      const hover = tracker ? hovering(view, tracker) : [];
      if (tracker) completing(tracker);
      extensions.addExtension({
        name: NAME,
        factory: ({ model }) =>
          codemirror.EditorExtensionRegistry.createImmutableExtension([
            language(model),
            marks(model),
            hover
          ])
      });
    }
  });

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB[NAME] = {
    init: scope => {
      shared = scope;
    },
    get: async () => {
      const names = ['codemirror', 'notebook'].map(name => `@jupyterlab/${name}`);
      names.push('@codemirror/state', '@codemirror/view', '@lumino/widgets');
      const loaded = Promise.all(names.map(load));
      const predictions = await import(PREDICTIONS);
      const [codemirror, notebook, state, view, widgets] = await loaded;
      return () => [
        plugin(codemirror, notebook, state, view),
        predictions.plugin(NAME, widgets, notebook)
      ];
    }
  };
})();
