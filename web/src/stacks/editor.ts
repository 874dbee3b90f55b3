// Links that open a line in an editor.

export interface Place {
  file: string;
  line: number;
}

// What a server may name as an editor; anything else (javascript: above all) makes no link.
const EDITORS = /^(vscode|vscode-insiders|vscodium|cursor|windsurf|zed|idea|pycharm|jetbrains|subl|txmt|emacs|mvim|http|https):/i;

export function editorUrl(frame: Place, template: string | null | undefined): string | null {
  if (!template || !EDITORS.test(template) || !frame.file.startsWith("/")) return null;
  return template.replace("{file}", encodeURI(frame.file).replace(/[?#]/g, encodeURIComponent)).replace("{line}", String(frame.line));
}
