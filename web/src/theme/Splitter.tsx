/** A border between two parts of the page that can be moved, by mouse and by arrows. */

interface SplitterProps {
  label: string;
  isVertical: boolean;
  value: number;
  least: number;
  most: number;
  step: number;
  /** The value for a place of the window. */
  valueAt: (place: { x: number; y: number }) => number;
  change: (value: number) => void;
}

export function Splitter({ label, isVertical, value, least, most, step, valueAt, change }: SplitterProps) {
  const set = (to: number): void => change(Math.round(Math.min(Math.max(to, least), most)));
  return (
    <div
      class={isVertical ? "splitter vertical" : "splitter"}
      role="separator"
      aria-label={label}
      aria-orientation={isVertical ? "vertical" : "horizontal"}
      aria-valuenow={value}
      aria-valuemin={least}
      aria-valuemax={most}
      tabIndex={0}
      onKeyDown={(event) => {
        const by = { ArrowUp: -step, ArrowLeft: -step, ArrowDown: step, ArrowRight: step }[event.key];
        if (by === undefined) return;
        set(value + by);
        event.preventDefault();
      }}
      onPointerDown={(event) => {
        event.preventDefault();
        const part = event.currentTarget;
        part.setPointerCapture(event.pointerId);
        part.onpointermove = (move) => set(valueAt({ x: move.clientX, y: move.clientY }));
        part.onpointerup = part.onpointercancel = () => (part.onpointermove = null);
      }}
    />
  );
}
