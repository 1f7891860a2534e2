/** Who uses the page, and whether the server answers. */

import { signal } from "@preact/signals";

import { info as askInfo, onAnswer, RequestFailed, useToken } from "../api/client";
import type { Info, Problem } from "../api/types";

export type Connection = "connecting" | "connected" | "unreachable" | "refused";

export const connection = signal<Connection>("connecting");
export const info = signal<Info | null>(null);
/** Why the token is asked for; null when it is not. */
export const wantsToken = signal<Problem | null>(null);
/** What is said to screen readers when something ends; they read each change. */
export const announced = signal("");
/** Whether that is shown, too: what a click or a key did elsewhere than where one looks. */
export const isTold = signal(false);

const KEY = "underlay-token";

export const announce = (text: string): void => {
  isTold.value = false;
  announced.value = announced.value === text ? `${text}\u00a0` : text; // the same text twice is read twice
};

const TOLD_MS = 4_000;
let telling = 0;

/** Say a text to screen readers and show it for a while. */
export function tell(text: string): void {
  announce(text);
  isTold.value = true;
  window.clearTimeout(telling);
  telling = window.setTimeout(() => (isTold.value = false), TOLD_MS);
}

onAnswer((problem) => {
  if (problem?.status === 0) connection.value = "unreachable";
  else if (problem?.status === 401) {
    connection.value = "refused";
    wantsToken.value = problem;
  } else if (connection.value !== "connected") connection.value = "connected";
});

/** Ask the server who one is, with the token that this tab of the browser keeps, if it does. */
export async function begin(): Promise<void> {
  useToken(kept());
  await refresh();
}

export async function refresh(): Promise<void> {
  try {
    info.value = await askInfo();
    wantsToken.value = null;
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
    if (error.problem.status === 401) info.value = null;
  }
}

/** Log in. The token stays in memory; with `isRemembered` in this tab's sessionStorage, until the tab is closed. */
export async function logIn(token: string, isRemembered: boolean): Promise<void> {
  useToken(token);
  forgetKept();
  if (isRemembered) {
    try {
      sessionStorage.setItem(KEY, token);
    } catch {
      // a browser that keeps nothing: the token is in memory
    }
  }
  await refresh();
}

export function logOut(): void {
  useToken(null);
  forgetKept();
  info.value = null;
  location.reload(); // whatever the token could see leaves the memory
}

function kept(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function forgetKept(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // as above
  }
}
