/** The page: catalog at the left, the editor above the results. */

export function App() {
  return (
    <main>
      <h1>Underlay</h1>
    </main>
  );
}
