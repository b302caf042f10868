"""Paper: every figure and table of the paper, computed anew, beside what the paper says."""

from appca.ui import controls, paper_page

controls.heading("Paper")

size = paper_page.which()
paper_page.all_of_them(size)
paper_page.results(size)
