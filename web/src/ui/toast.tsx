// Short messages, also for screen readers.
import { signal } from "@preact/signals";

const message = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;
const SHOWN_MS = 3500;

export function say(text: string): void {
  message.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => (message.value = ""), SHOWN_MS);
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    say(`${what} could not be copied: the browser does not allow it here`);
  }
}

export function Toast() {
  return (
    <div class="toast" role="status" aria-live="polite" data-shown={message.value !== ""}>
      {message.value}
    </div>
  );
}
