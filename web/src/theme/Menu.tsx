/** A menu that opens at a button or at a place. Arrows move in it, Escape closes it. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface MenuItem {
  label: string;
  /** More about it, smaller. */
  note?: string | undefined;
  isChecked?: boolean;
  isDisabled?: boolean;
  act: () => void;
}

export interface MenuPlace {
  left: number;
  bottom: number;
}

/** The items, below a place of the window. */
export function MenuAt({ items, label, at, close }: { items: MenuItem[]; label: string; at: MenuPlace; close: () => void }) {
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    const menu = list.current!;
    const { width, height } = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(4, Math.min(at.left, window.innerWidth - width - 4))}px`;
    menu.style.top = `${Math.max(4, Math.min(at.bottom, window.innerHeight - height - 4))}px`;
    menu.querySelector<HTMLElement>("button:not(:disabled)")?.focus();
  }, []);
  useEffect(() => {
    const outside = (event: Event): void => {
      if (!list.current?.contains(event.target as Node)) close();
    };
    window.addEventListener("pointerdown", outside, true);
    window.addEventListener("resize", close);
    return () => {
      window.removeEventListener("pointerdown", outside, true);
      window.removeEventListener("resize", close);
    };
  }, []);
  const onKey = (event: KeyboardEvent): void => {
    const buttons = [...list.current!.querySelectorAll<HTMLElement>("button:not(:disabled)")];
    const now = buttons.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to !== undefined) buttons[(to + buttons.length) % buttons.length]?.focus();
    else if (event.key === "Escape" || event.key === "Tab") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <ul class="menu" role="menu" aria-label={label} ref={list} onKeyDown={onKey}>
      {items.map((item) => (
        <li role="none" key={item.label}>
          <button
            type="button"
            role={item.isChecked === undefined ? "menuitem" : "menuitemradio"}
            aria-checked={item.isChecked}
            disabled={item.isDisabled ?? false}
            tabIndex={-1}
            onClick={() => {
              close();
              item.act();
            }}
          >
            <span>{item.label}</span>
            {item.note !== undefined && <small>{item.note}</small>}
          </button>
        </li>
      ))}
    </ul>
  );
}

interface ButtonProps {
  items: MenuItem[];
  label: string;
  title?: string;
  class?: string;
  disabled?: boolean;
  children: ComponentChildren;
}

/** A button with a menu. */
export function MenuButton({ items, label, title, disabled, children, ...rest }: ButtonProps) {
  const [at, open] = useState<MenuPlace | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    open(null);
    button.current?.focus();
  };
  return (
    <>
      <button
        type="button"
        ref={button}
        class={rest.class ?? "quiet"}
        aria-haspopup="menu"
        aria-expanded={at !== null}
        aria-label={label}
        title={title ?? label}
        disabled={disabled ?? false}
        onClick={() => {
          const { left, bottom } = button.current!.getBoundingClientRect();
          open(at === null ? { left, bottom: bottom + 2 } : null);
        }}
      >
        {children}
      </button>
      {at !== null && <MenuAt items={items} label={label} at={at} close={close} />}
    </>
  );
}
