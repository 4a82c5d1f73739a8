// A JupyterLab extension: cells that begin with %%kernel are highlighted and indented as C.
//
// JupyterLab loads it as a module-federation container, an object with `init` and `get`. It is short
// enough to be written by hand, and so needs neither node nor a bundler: everything that it uses is
// shared by JupyterLab itself.

(() => {
  const NAME = 'mpilab-c-cells';
  const MAGIC = /^%%kernel\b/;
  const MAGIC_LENGTH = 64; // more than enough of the first line to see the magic
  let shared;

  // A module that JupyterLab shares; there is one version of each of those used here.
  const load = async name => {
    const [version] = Object.values(shared[name]);
    return (await version.get())();
  };

  // The CodeMirror extension factory of one cell: C while its text begins with the magic.
  const forCell = (state, c) => model => {
    const { Compartment, EditorState, Prec } = state;
    const language = new Compartment();
    // The first language counts; the one of the notebook (Python) follows.
    const asC = Prec.highest(c);
    const isC = text => MAGIC.test(text);
    return [
      language.of(isC(model.sharedModel.getSource()) ? asC : []),
      EditorState.transactionExtender.of(change => {
        if (!change.docChanged) return null;
        const before = isC(change.startState.doc.sliceString(0, MAGIC_LENGTH));
        const after = isC(change.newDoc.sliceString(0, MAGIC_LENGTH));
        return before === after ? null : { effects: language.reconfigure(after ? asC : []) };
      })
    ];
  };

  const plugin = ({ EditorExtensionRegistry, IEditorExtensionRegistry, IEditorLanguageRegistry }, state) => ({
    id: `${NAME}:plugin`,
    description: 'Shows %%kernel cells as C.',
    autoStart: true,
    requires: [IEditorExtensionRegistry, IEditorLanguageRegistry],
    // JupyterLab opens notebooks once all extensions have been activated, so none is missed.
    activate: async (_, extensions, languages) => {
      const { support } = await languages.getLanguage('text/x-csrc');
      const extension = forCell(state, support);
      extensions.addExtension({
        name: NAME,
        factory: ({ model }) => EditorExtensionRegistry.createImmutableExtension(extension(model))
      });
    }
  });

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB[NAME] = {
    init: scope => {
      shared = scope;
    },
    get: async () => {
      const codemirror = await load('@jupyterlab/codemirror');
      const state = await load('@codemirror/state');
      return () => plugin(codemirror, state);
    }
  };
})();
