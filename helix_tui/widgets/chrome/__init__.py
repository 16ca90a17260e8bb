"""What stands around every screen: pulse, tabs, footer, prompt, menus."""
