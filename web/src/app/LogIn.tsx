/** Asks for the token. */

import { useState } from "preact/hooks";

import { logIn, wantsToken } from "../state/session";
import { Dialog } from "../theme/Dialog";

export function LogIn({ done }: { done: () => void }) {
  const [token, setToken] = useState("");
  const [isRemembered, remember] = useState(false);
  const [isBusy, busy] = useState(false);
  const [wasRefused, refuse] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (token.trim() === "") return;
    busy(true);
    await logIn(token.trim(), isRemembered);
    busy(false);
    if (wantsToken.value === null) done();
    else refuse(true);
  };
  return (
    <Dialog title="Log in" close={() => undefined} isNeeded>
      <form class="log-in" onSubmit={(event) => void submit(event)}>
        <p>This server needs a token. Whoever runs it makes one with <code>underlay token create</code>.</p>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={token}
            aria-invalid={wasRefused}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {wasRefused && <p class="bad" role="alert">{wantsToken.value?.detail ?? "The token is not valid."}</p>}
        <label class="check">
          <input type="checkbox" checked={isRemembered} onChange={(event) => remember(event.currentTarget.checked)} />
          Remember it until this browser tab is closed
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          Log in
        </button>
      </form>
    </Dialog>
  );
}
