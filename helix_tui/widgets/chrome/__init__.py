"""The parts around every screen: status bar, tabs, footer, prompt, menus."""
