"""How many different outputs can a transformer generate? Models, cramming, bounds, geometry."""
