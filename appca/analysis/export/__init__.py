"""For the page Export: tables, files and a script that makes the run again."""
