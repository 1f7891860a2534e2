/** The page's start. */

import { render } from "preact";

import { App } from "./app/App";
import "./theme/theme.css";
import "./app/app.css";
import "./grid/grid.css";
import "./results/results.css";

const page = document.getElementById("page");
if (page !== null) render(<App />, page);
