/** The tree of datasets, tables and columns. */

/** `insert` puts a name into the text; `open` shows the page of a table. */
export function CatalogTree(_: { insert: (name: string) => void; open: (table: string) => void }) {
  return <nav aria-label="Catalog" />;
}
