"""The folder that ``attach`` puts on ``PYTHONPATH``: Python imports the ``sitecustomize`` in it when it starts."""
