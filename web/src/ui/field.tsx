// Controls whose values live in the address.
import { useEffect, useRef, useState } from "preact/hooks";
import { param, set } from "./url";

export function Choice({ name, label, options }: { name: string; label: string; options: [string, string][] }) {
  return (
    <label>
      {label}{" "}
      <select value={param(name)} onChange={(event) => set({ [name]: event.currentTarget.value })}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface FieldProps {
  name: string;
  label: string;
  hint: string;
  size: number;
  search?: boolean;
  isRight?: (text: string) => boolean;
}

const TYPING_MS = 250;

/** Taken over while one types, a moment later. */
export function Field({ name, label, hint, size, search, isRight = () => true }: FieldProps) {
  const value = param(name);
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const own = useRef(value); // what this field itself has last put into the address
  useEffect(() => {
    if (value !== own.current) setText(value);
    own.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const wrong = text !== "" && !isRight(text);
  const take = (typed: string) => {
    clearTimeout(timer.current);
    if (typed !== "" && !isRight(typed)) return;
    own.current = typed;
    set({ [name]: typed }, true);
  };
  return (
    <label>
      {label}{" "}
      <input
        {...(search ? { type: "search" as const } : { type: "text" as const, list: undefined })}
        value={text}
        size={size}
        placeholder={hint}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={wrong}
        title={wrong ? `Not understood; for example: ${hint}` : undefined}
        onInput={(event) => {
          const typed = event.currentTarget.value;
          setText(typed);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => take(typed), TYPING_MS);
        }}
        onChange={(event) => take(event.currentTarget.value)}
      />
    </label>
  );
}
