/** Gives the person a file that this page made. Its type says bytes, so that a browser does not show it as a page. */
export function saveAs(name: string, content: BlobPart): void {
  const address = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // A browser begins the download in a later task.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
