import { render } from "preact";
import { App } from "./app";
import { listen } from "./ui/answers";
import { listenToKeys } from "./ui/keys";
import { applyTheme } from "./ui/theme";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/pages.css";

applyTheme();
listenToKeys();
listen();
render(<App />, document.getElementById("page")!);
