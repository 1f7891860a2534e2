/** A window over the page; Escape closes it and the focus goes back to where it was. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  close: () => void;
  /** It cannot be closed: the page needs the answer. */
  isNeeded?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, close, isNeeded = false, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current!;
    const before = document.activeElement as HTMLElement | null;
    shown.showModal();
    return () => {
      shown.close();
      before?.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        if (!isNeeded) close();
      }}
      onClick={(event) => {
        if (event.target === dialog.current && !isNeeded) close(); // on the ground behind it
      }}
    >
      <div class="dialog-in">
        <header>
          <h2>{title}</h2>
          {!isNeeded && (
            <button type="button" class="quiet" aria-label="Close" onClick={close}>
              ✕
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  );
}
