/** The page of a table: columns, versions, files, blocks, health, sources. */

export function TablePage({ name }: { name: string; version: number | null; open: (sql: string) => void }) {
  return <main aria-label={`Table ${name}`} />;
}
