/** The page's start. */

import { render } from "preact";

import { App } from "./app/App";
import "./theme/theme.css";

const page = document.getElementById("page");
if (page !== null) render(<App />, page);
