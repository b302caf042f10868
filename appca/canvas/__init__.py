"""The picture of a fitted model: its scene, JavaScript and hosts; see `docs/scene.md`."""
