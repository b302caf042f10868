/**
 * Close the notice "Page not found" that Streamlit shows over a page that it then finds.
 *
 * The notice is there before this script is: both come with the same run, and it came first.
 */
export default function closeFalseAlarm() {
  for (const dialog of document.querySelectorAll('[role="dialog"]')) {
    if (dialog.textContent.startsWith('Page not found')) {
      dialog.querySelector('button[aria-label="Close"]')?.click();
    }
  }
}
