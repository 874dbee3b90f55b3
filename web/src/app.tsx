// The frame around all pages.
import { useEffect } from "preact/hooks";
import { ComparePage } from "./compare/page";
import { OperationsPage } from "./operations/page";
import { ProfilePage } from "./profile/page";
import { QueriesPage } from "./queries/page";
import { QueryPage } from "./queries/query";
import { TracesPage } from "./traces/page";
import { TracePage } from "./trace/page";
import { connected, paused, status } from "./ui/answers";
import { Patterns } from "./stacks/colours";
import { Help, helpShown } from "./ui/help";
import { useKeys } from "./ui/keys";
import { mark, setMark } from "./ui/mark";
import { Note } from "./ui/state";
import { nextTheme, theme } from "./ui/theme";
import { copy, Toast } from "./ui/toast";
import { go, path } from "./ui/url";

const SECTIONS: [string, string, RegExp][] = [
  ["/traces", "Traces", /^\/($|trace)/],
  ["/queries", "Queries", /^\/quer/],
  ["/operations", "Operations", /^\/operation/],
  ["/profile", "Profiles", /^\/profile/],
  ["/compare", "Compare", /^\/compare/],
];

const THEMES = { auto: "◐", light: "☀", dark: "☾" };

export function App() {
  useKeys({
    "g t": () => go("/traces"),
    "g q": () => go("/queries"),
    "g o": () => go("/operations"),
    "g p": () => go("/profile"),
    "g c": () => go("/compare"),
    "/": () => document.querySelector<HTMLInputElement>("input[type=search]")?.focus(),
    y: () => void copy(location.href, "Link"),
    p: () => (paused.value = !paused.value),
    "?": () => (helpShown.value = true),
  });
  return (
    <>
      <a class="skip" href="#main">Skip to the content</a>
      <Header />
      <main id="main" tabIndex={-1}>
        <Page />
      </main>
      <Toast />
      <Help />
      <Patterns />
    </>
  );
}

function Page() {
  const [, section, id] = path.value.split("/");
  const title = { traces: "Traces", trace: "Trace", queries: "Queries", query: "Query", operations: "Operations", profile: "Profiles", compare: "Compare" };
  useEffect(() => {
    document.title = `${title[(section || "traces") as keyof typeof title] ?? "Not found"} · otel-asyncprof`;
  }, [section, id]);
  switch (section) {
    case "":
    case "traces":
      return <TracesPage />;
    case "trace":
      return <TracePage id={id ?? ""} key={id} />;
    case "queries":
      return <QueriesPage />;
    case "query":
      return <QueryPage id={id ?? ""} key={id} />;
    case "operations":
      return <OperationsPage />;
    case "profile":
      return <ProfilePage />;
    case "compare":
      return <ComparePage />;
    default:
      return (
        <div class="page">
          <h1>Not found</h1>
          <Note kind="error">
            There is no page at {path.value}. <a href="/traces">To the traces</a>
          </Note>
        </div>
      );
  }
}

function Header() {
  return (
    <header class="top">
      <a class="brand" href="/traces">otel-asyncprof</a>
      <nav aria-label="Pages">
        {SECTIONS.map(([to, name, pattern]) => (
          <a key={to} href={to} aria-current={pattern.test(path.value) ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <span class="grow" />
      {mark.value && (
        <span class="chip" title="Marked, to be compared with something else">
          A: {mark.value.label} <button aria-label="Forget the mark" onClick={() => setMark(null)}>×</button>
        </span>
      )}
      <Live />
      <button onClick={nextTheme} title={`Colours: ${theme.value}`} aria-label={`Colours: ${theme.value}. Change`}>
        {THEMES[theme.value]}
      </button>
      <button onClick={() => (helpShown.value = true)} title="Keys (?)" aria-label="Keys">
        ?
      </button>
    </header>
  );
}

function Live() {
  if (!connected.value) return <span class="live off" role="status">● not connected</span>;
  const rejected = status.value && Object.values(status.value.rejected).some((n) => n > 0);
  return (
    <>
      {rejected && <span class="live warn" title={JSON.stringify(status.value!.rejected)}>▲ some data refused</span>}
      <button class={paused.value ? "live" : "live on"} aria-pressed={!paused.value} onClick={() => (paused.value = !paused.value)} title="News from the server (p)">
        ● {paused.value ? "paused" : "live"}
      </button>
    </>
  );
}
