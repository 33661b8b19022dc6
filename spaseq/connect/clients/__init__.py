"""The clients that read servers and growing files, one file per scheme. Open ``websocket.py`` first."""
