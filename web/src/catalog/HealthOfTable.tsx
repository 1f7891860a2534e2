/** What care would improve, each with its command. */

import { health as askHealth } from "../api/client";
import type { TableDefinition } from "../api/types";
import { Awaited, CopyButton, useAsked } from "./parts";
import { type Row, numberOf, textIn } from "./rows";
import { shareText } from "./text";
import { bytesText, countText } from "../theme/text";

export function HealthOfTable({ table }: { table: TableDefinition }) {
  const asked = useAsked(() => askHealth(table.name), [table.name]);
  return (
    <Awaited asked={asked}>
      {(health) => {
        const findings = (health.findings ?? []) as Row[];
        return (
          <>
            {findings.length === 0 && <p class="table-good">✓ Nothing to do: care would improve nothing.</p>}
            {findings.length > 0 && (
              <ul class="findings" aria-label="What care would improve">
                {findings.map((finding) => (
                  <li key={textIn(finding, "kind")}>
                    <h2>{textIn(finding, "kind")}</h2>
                    <p>
                      {textIn(finding, "text")}. {gainText(finding)}
                    </p>
                    <p class="findings-command">
                      <code dir="ltr">{textIn(finding, "command")}</code>
                      <CopyButton text={textIn(finding, "command")} label={`Copy the command for ${textIn(finding, "kind")}`} />
                    </p>
                  </li>
                ))}
              </ul>
            )}
            <Figures health={health} />
          </>
        );
      }}
    </Awaited>
  );
}

function gainText(finding: Row): string {
  const [bytes, requests] = [numberOf(finding, "saved_bytes"), numberOf(finding, "saved_requests")];
  const gains = [
    bytes > 0 ? `frees about ${bytesText(bytes)}` : null,
    requests > 0 ? `a scan opens about ${countText(requests)} fewer files` : null,
  ].filter((one) => one !== null);
  if (gains.length === 0) return "";
  const text = gains.join("; ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function Figures({ health }: { health: Row }) {
  const number = (name: string): number => numberOf(health, name);
  const unsorted = health.unsorted_share;
  const facts: [string, string][] = [
    ["Small files", `${countText(number("small_file_count"))} of ${countText(number("file_count"))}, ${bytesText(number("small_file_bytes"))}`],
    ["Deleted rows in files", `${countText(number("dead_row_count"))}, about ${bytesText(number("dead_bytes"))}`],
    ["Files that overlap in the order", unsorted == null ? "the table has no order" : shareText(Number(unsorted), 1)],
    ["Versions kept", `${countText(number("version_count"))}, ${bytesText(number("old_bytes"))} only in old ones`],
    ["Files of no version", `${shareText(number("orphan_share"), 1)} of ${countText(number("sampled_count"))} sampled`],
  ];
  return (
    <dl class="table-facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
