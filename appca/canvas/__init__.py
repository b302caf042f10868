"""The picture of a fitted model: its scene, the JavaScript that draws it, and its hosts.

`docs/scene.md` has the format of a scene and the canvas's own interface.
"""
