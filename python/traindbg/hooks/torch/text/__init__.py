"""What the program's text says: its loop's rounds and stops, its measures, losses written out."""
