/** The page: catalog at the left, the editor above the results. */

export function App() {
  return <h1>Underlay</h1>;
}
